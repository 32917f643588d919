//! The origins of web pages that may use the API.
//!
//! A browser sends the origin of a page with its requests, and shows the answer to the page only if the server
//! allows that origin. Before most requests it asks with a preflight, which has no token.

use std::collections::BTreeSet;

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedOrigins(BTreeSet<String>);

impl AllowedOrigins {
    /// The error says what is wrong with an origin.
    pub fn of<'o>(origins: impl IntoIterator<Item = &'o str>) -> Result<Self, String> {
        let origins = origins.into_iter().map(|origin| {
            plain(origin).ok_or_else(|| {
                format!("must be the origin of a page such as http://localhost:3000, not `{origin}`")
            })
        });
        Ok(Self(origins.collect::<Result<_, _>>()?))
    }

    /// The origin of a request, if it is allowed.
    pub(crate) fn find(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (origin, None) = (origins.next()?, origins.next()) else {
            return None;
        };
        self.0.contains(&plain(origin.to_str().ok()?)?).then(|| origin.clone())
    }

    /// Adds what the browser wants to know before it shows an answer to a page.
    pub(crate) fn mark(&self, answer: &mut Response, origin: Option<HeaderValue>) {
        let headers = answer.headers_mut();
        if !self.0.is_empty() {
            // An answer to one origin is not to be shown to another from a cache.
            let _ = headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = origin {
            let _ = headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let exposed = HeaderValue::from_static("Retry-After");
            let _ = headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }
}

/// The answer to the question of a browser whether a page may send a request, if it is one.
pub(crate) fn preflight(request: &Request) -> Option<Response> {
    const PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
    let asks = request.headers();
    if request.method() != Method::OPTIONS || !asks.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut answer = StatusCode::NO_CONTENT.into_response();
    let headers = answer.headers_mut();
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        let _ = headers.insert(name, HeaderValue::from_static(value));
    }
    // A page of a public site that asks a server on this machine.
    if asks.contains_key(PRIVATE) {
        let allowed = HeaderName::from_static("access-control-allow-private-network");
        let _ = headers.insert(allowed, HeaderValue::from_static("true"));
    }
    Some(answer)
}

/// An origin as browsers write it: lower case, without a usual port.
fn plain(origin: &str) -> Option<String> {
    let uri: Uri = origin.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let is_whole =
        matches!(uri.path(), "" | "/") && uri.query().is_none() && !origin.contains(['@', '#', '*']);
    let host = authority.host().to_ascii_lowercase();
    if !is_whole || host.is_empty() {
        return None;
    }
    Some(match authority.port_u16() {
        Some(port) if port != usual => format!("{scheme}://{host}:{port}"),
        // A port that is no number.
        None if authority.as_str().len() > host.len() => return None,
        Some(_) | None => format!("{scheme}://{host}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for (given, origin) in [
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://LocalHost:3000/", "http://localhost:3000"),
            ("https://flows.example.com:443", "https://flows.example.com"),
            ("http://127.0.0.1:80", "http://127.0.0.1"),
            ("http://[::1]:3000", "http://[::1]:3000"),
        ] {
            assert_eq!(plain(given).as_deref(), Some(origin), "{given}");
        }
        for wrong in [
            "",
            "*",
            "null",
            "localhost",
            "localhost:3000",
            "http://",
            "ftp://x",
            "http://*",
            "http://*.x",
            "http://x/path",
            "http://x?q",
            "http://x#f",
            "http://a@x",
            "http://x:port",
            "http://x:99999",
            "http://x:",
            "file:///x",
        ] {
            assert_eq!(plain(wrong), None, "{wrong}");
        }
    }
}
