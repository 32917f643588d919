//! Who may send requests.
//!
//! Without a token only programs on this machine may. A web page can make a browser send requests to this
//! machine; they have an `Origin` header or a foreign `Host`, and are refused. With a token, every client that
//! sends it may. Webhook results need no token: their URL contains the receipt token of the attempt.
//! Pages of the allowed origins may send what any other client may.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use subtle::ConstantTimeEq;

use crate::answer::error_response;
use crate::limits::{Caller, only_reads};
use crate::origins::{AllowedOrigins, preflight};

#[derive(Clone, Default)]
pub struct Access {
    token: Option<String>,
    public_host: Option<String>,
    origins: AllowedOrigins,
}

impl Access {
    /// Only this machine, under its own names and the host of the public URL.
    pub fn local(public_url: Option<&str>) -> Self {
        let uri: Option<Uri> = public_url.and_then(|url| url.parse().ok());
        let public_host = uri.and_then(|uri| Some(uri.host()?.to_ascii_lowercase()));
        Self { public_host, ..Self::default() }
    }

    pub fn by_token(token: String) -> Self {
        Self { token: Some(token), ..Self::default() }
    }

    /// The same, also for pages of these origins.
    pub fn with_origins(self, origins: AllowedOrigins) -> Self {
        Self { origins, ..self }
    }

    pub fn may_listen(&self, address: IpAddr) -> Result<(), String> {
        match &self.token {
            Some(token) if token.is_empty() => Err("the access token is empty".to_owned()),
            None if !address.to_canonical().is_loopback() => {
                Err(format!("{address} is reachable from other machines, so an access token is required"))
            }
            _ => Ok(()),
        }
    }

    /// Who sends a request, or why it is refused.
    fn check(&self, request: &Request) -> Result<Caller, Box<Response>> {
        let (method, path) = (request.method(), request.uri().path());
        let is_result = method == Method::POST && path.starts_with("/webhook/");
        let mut caller = match path {
            "/health" | "/ready" if only_reads(method) => Caller::HealthCheck,
            _ => Caller::Anonymous,
        };
        let headers = request.headers();
        if let Some(token) = &self.token {
            if has_token(headers, token) {
                caller = Caller::Trusted;
            } else if !is_result && caller != Caller::HealthCheck {
                return Err(Box::new(token_required()));
            }
        } else if let Some(error) = self.why_foreign(request) {
            return Err(Box::new(error_response(StatusCode::FORBIDDEN, error)));
        }
        let sends = method == Method::POST || method == Method::PUT;
        if sends && !is_result && has_body(headers) && !is_json(headers) {
            let error = "the request body must be application/json";
            return Err(Box::new(error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, error)));
        }
        Ok(caller)
    }

    /// Why a request is refused that comes from a page in a browser, or is sent to a foreign host name.
    fn why_foreign(&self, request: &Request) -> Option<&'static str> {
        let headers = request.headers();
        if headers.contains_key(ORIGIN) && self.origins.find(headers).is_none() {
            return Some("requests from web pages are refused, unless `--allow-origin` names their origin");
        }
        let mut hosts = headers.get_all(HOST).iter();
        let named = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
            _ => None,
        };
        let ours = |authority: &Authority| self.is_ours(authority.host());
        let asked = request.uri().authority();
        if named.as_ref().is_some_and(ours) && asked.is_none_or(ours) {
            return None;
        }
        Some("the `Host` header must name this machine or the public URL")
    }

    fn is_ours(&self, host: &str) -> bool {
        let plain = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let address: Result<IpAddr, _> = plain.unwrap_or(host).parse();
        let public_host = self.public_host.as_deref();
        address.is_ok_and(|address| address.is_loopback())
            || host.eq_ignore_ascii_case("localhost")
            || public_host.is_some_and(|public| host.eq_ignore_ascii_case(public))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret.
        f.debug_struct("Access")
            .field("has_token", &self.token.is_some())
            .field("public", &self.public_host)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

pub(crate) fn guarded(routes: Router, access: Access) -> Router {
    routes.layer(from_fn_with_state(Arc::new(access), guard))
}

async fn guard(State(access): State<Arc<Access>>, mut request: Request, next: Next) -> Response {
    let origin = access.origins.find(request.headers());
    // A preflight has no token. It only says what the page of an allowed origin may try.
    let asked = origin.as_ref().and_then(|_| preflight(&request));
    let mut answer = match asked.map_or_else(|| access.check(&request), |answer| Err(Box::new(answer))) {
        Ok(caller) => {
            let _ = request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(answer) => *answer,
    };
    access.origins.mark(&mut answer, origin);
    answer
}

fn token_required() -> Response {
    let mut answer =
        error_response(StatusCode::UNAUTHORIZED, "a token is required: send `Authorization: Bearer TOKEN`");
    let bearer = HeaderValue::from_static("Bearer");
    let _ = answer.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    answer
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let shown = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let shown = shown.and_then(|shown| shown.split_at_checked(7));
    // In constant time: how long a refusal takes must not tell how much of the token was right.
    shown.is_some_and(|(scheme, shown)| {
        scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(shown.trim_ascii().ct_eq(token.as_bytes()))
    })
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH);
    headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests;
