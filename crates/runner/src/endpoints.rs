//! The endpoints that may be called, if the operator limits them.
//!
//! A pattern is a URL in which `*` stands for any text: `https://*.example.com/hooks/*`. Scheme, host, port
//! and path are compared separately, so that a `*` in the host cannot match part of the path, and user
//! information before an `@` is never matched.
//!
//! A server behind the URL may decode `%2f`, resolve `..` or merge slashes before it routes a request. So a
//! path is allowed only if every form it may be read in is: `/ok/..%2fno` is `/no` to such a server.

use reqwest::Url;

/// How often a path may be percent-encoded over itself. Nothing legitimate comes near it.
const MAX_ENCODINGS: usize = 4;

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

    /// Whether some address with the scheme, host and port of this one is allowed, for an address whose path
    /// is not known yet.
    pub fn may_allow(&self, url: &str) -> bool {
        let has_origin = |url: &Url| self.patterns.iter().any(|pattern| pattern.allows_origin(url));
        self.patterns.is_empty() || Url::parse(url).is_ok_and(|url| has_origin(&url))
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
        self.allows_origin(url) && self.allows_path(url.path())
    }

    fn allows_origin(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default();
        matches(&self.scheme, url.scheme())
            && matches(&self.host, host)
            && (self.port.is_none() || self.port == port)
    }

    fn allows_path(&self, path: &str) -> bool {
        let decoded = decoded(&self.path);
        let matched = |form: &str| {
            matches(&self.path, form) || decoded.as_deref().is_some_and(|pattern| matches(pattern, form))
        };
        forms(path).is_some_and(|forms| forms.iter().all(|form| matched(form)))
    }
}

/// The forms in which a server may read a path: percent-encoding undone no, one or several times, dot segments
/// resolved, with empty segments kept or dropped. `None` if the path has no definite meaning.
fn forms(path: &str) -> Option<Vec<String>> {
    let mut forms = vec![path.to_owned()];
    let mut now = path.to_owned();
    for _ in 0..=MAX_ENCODINGS {
        forms.extend([resolved(&now, true), resolved(&now, false)]);
        let next = decoded(&now)?;
        if next == now {
            return Some(forms);
        }
        now = next;
    }
    None
}

/// Undoes one percent-encoding. `None` if the result is not UTF-8, as in the overlong forms of a slash that
/// some servers accept.
fn decoded(path: &str) -> Option<String> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let bytes = path.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0_usize;
    while let Some(byte) = bytes.get(at) {
        let pair = bytes.get(at.saturating_add(1)..).unwrap_or_default();
        let value = digit(pair.first()).zip(digit(pair.get(1)));
        let value = value.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        let (next, step) = match value.filter(|_| *byte == b'%') {
            Some(value) => (value, 3),
            None => (*byte, 1),
        };
        plain.push(next);
        at = at.saturating_add(step);
    }
    String::from_utf8(plain).ok()
}

/// The path without `.` and `..` segments. A backslash counts as a slash, and what follows a `;` in a segment
/// as its parameters.
fn resolved(path: &str, keeps_empty: bool) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let path = path.strip_prefix(['/', '\\']).unwrap_or(path);
    let mut segments = path.split(['/', '\\']).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment.split(';').next().unwrap_or_default() {
            "." => {}
            ".." => drop(kept.pop()),
            "" if !keeps_empty && !is_last => continue,
            _ => {
                kept.push(segment);
                continue;
            }
        }
        // A dot segment at the end names a folder.
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
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
    fn a_path_is_refused_if_a_server_may_read_it_as_one_outside_the_pattern() {
        let only = "http://h/ok/*";
        for outside in [
            "/ok/..%2fno",
            "/ok/..%2Fno",
            "/ok/%2e%2e%2fno",
            "/ok/.%2e/no",
            "/ok/..%5cno",
            "/ok/..%252fno",
            "/ok/..%25252fno",
            "/ok/%252e%252e/no",
            "/ok/a/..%2f..%2f..%2fno",
            "/ok//..%2fno",
            "/ok/..;x%2fno",
            "/ok/..;/no",
            "/ok/x;y/..%2f..%2fno",
            "/ok/%c0%ae%c0%ae%c0%afno",
            "/ok/%25252525252525252e",
            "/ok%2f..%2fno",
            "/no",
        ] {
            assert!(!allows(only, &format!("http://h{outside}")), "{outside}");
        }
        for inside in [
            "/ok/",
            "/ok/a%20b",
            "/ok/a%2Fb",
            "/ok/..a/...",
            "/ok/a/..%2fb",
            "/ok/100%",
            "/ok/%zz",
            "/ok/a//b",
            "/ok/a;v=1/b",
            "/ok/x?u=/../../no",
            "/ok/%E2%82%AC",
        ] {
            assert!(allows(only, &format!("http://h{inside}")), "{inside}");
        }
        for (pattern, url, allowed) in [
            ("http://h/a%20b/*", "http://h/a%20b/c", true),
            ("http://h/*.json", "http://h/a.json", true),
            ("http://h/*.json", "http://h/a.json%2f..%2fb", false),
            ("http://h/exact", "http://h/exact", true),
            ("http://h/exact", "http://h/./exact", true),
            ("http://h", "http://h/x/..%2fy", true),
        ] {
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
