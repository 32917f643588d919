//! The endpoints that may be called, if the operator limits them.
//!
//! A pattern is a URL in which `*` stands for any text: `https://*.example.com/hooks/*`. Scheme, host, port
//! and path are compared separately, so that a `*` in the host cannot match part of the path, and user
//! information before an `@` is never matched.

use reqwest::Url;

#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    patterns: Vec<EndpointPattern>,
}

#[derive(Clone, Debug)]
struct EndpointPattern {
    scheme: String,
    host: String,
    /// None allows any port.
    port: Option<u16>,
    path: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a valid endpoint pattern: {why}")]
pub struct EndpointPatternError {
    pub pattern: String,
    pub why: &'static str,
}

impl Endpoints {
    /// Without patterns every URL is allowed.
    pub fn of<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, EndpointPatternError> {
        let patterns = patterns.into_iter().map(EndpointPattern::read);
        Ok(Self { patterns: patterns.collect::<Result<_, _>>()? })
    }

    /// With patterns, a text that is not a URL is refused.
    pub fn allow(&self, url: &str) -> bool {
        if self.patterns.is_empty() {
            return true;
        }
        let Ok(url) = Url::parse(url) else {
            return false;
        };
        self.patterns.iter().any(|pattern| pattern.allows(&url))
    }
}

impl EndpointPattern {
    fn read(text: &str) -> Result<Self, EndpointPatternError> {
        let wrong = |why| EndpointPatternError { pattern: text.to_owned(), why };
        let (scheme, rest) = text
            .split_once("://")
            .filter(|(scheme, _)| matches!(*scheme, "http" | "https" | "*"))
            .ok_or_else(|| wrong("it must begin with `http://` or `https://`"))?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/*"),
        };
        if authority.contains('@') {
            return Err(wrong("user information before an `@` is not supported"));
        }
        let ends_host = |at: usize| !authority.get(at..).unwrap_or_default().contains(']');
        let (host, port) = match authority.rfind(':').filter(|at| ends_host(*at)) {
            Some(at) => (
                authority.get(..at).unwrap_or_default(),
                authority.get(at.saturating_add(1)..).unwrap_or_default(),
            ),
            None => (authority, ""),
        };
        let usual = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        let port = match port {
            "*" => None,
            "" => usual,
            number => Some(number.parse().map_err(|_| wrong("the port must be a number or `*`"))?),
        };
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        Ok(Self { scheme: scheme.to_owned(), host: host.to_ascii_lowercase(), port, path: path.to_owned() })
    }

    fn allows(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default();
        matches(&self.scheme, url.scheme())
            && matches(&self.host, host)
            && (self.port.is_none() || self.port == port)
            && matches(&self.path, url.path())
    }
}

/// A `*` in the pattern stands for any text, also for none.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some((_, behind)) = rest.split_once(piece) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::Endpoints;

    fn allows(pattern: &str, url: &str) -> bool {
        Endpoints::of([pattern]).unwrap().allow(url)
    }

    #[test]
    fn scheme_host_port_and_path_are_compared_separately() {
        let cases = [
            ("http://127.0.0.1:*", "http://127.0.0.1:8080/run", true),
            ("http://127.0.0.1:*", "http://127.0.0.2:8080/run", false),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8081/run", false),
            ("http://steps", "http://steps/anything", true),
            ("http://steps", "http://steps:81/anything", false),
            ("https://*.example.com/hooks/*", "https://a.example.com/hooks/x", true),
            ("https://*.example.com/hooks/*", "https://a.example.com/other", false),
            ("https://*.example.com/*", "https://evil.net/.example.com/", false),
            ("https://*.example.com/*", "https://a.example.com@evil.net/", false),
            ("https://*.example.com/*", "http://a.example.com/", false),
            ("https://*.example.com/*", "https://A.EXAMPLE.com/", true),
            ("https://a.example.com/v1/*", "https://a.example.com/v1/../admin", false),
            ("http://[::1]:*", "http://[::1]:9/x", true),
            ("*://steps:*/*", "https://steps/x", true),
        ];
        for (pattern, url, allowed) in cases {
            assert_eq!(allows(pattern, url), allowed, "{pattern} and {url}");
        }
    }

    #[test]
    fn no_patterns_allow_everything_and_an_invalid_pattern_is_refused() {
        assert!(Endpoints::default().allow("http://anywhere/"));
        for wrong in ["steps", "ftp://x", "http://", "http://x:port", "http://a@b/"] {
            assert!(Endpoints::of([wrong]).is_err(), "{wrong}");
        }
    }
}
