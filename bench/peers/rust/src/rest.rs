//! `DELETE /plants/{id}` on axum.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::delete;

use crate::{Plants, bearer_token, is_expected};

pub fn router(plants: Mutex<Plants>) -> Router {
    Router::new().route("/plants/{id}", delete(delete_plant)).with_state(Arc::new(plants))
}

async fn delete_plant(State(plants): State<Arc<Mutex<Plants>>>, Path(text): Path<String>, header: HeaderMap) -> Response {
    let credential = header.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer_token);
    if !credential.is_some_and(is_expected) {
        let challenge = [(WWW_AUTHENTICATE, "Bearer realm=\"plantstore\"")];
        return (challenge, refusal(16, "a bearer token is required")).into_response();
    }
    // Only the canonical form of an id is accepted.
    let Some(id) = text.parse::<i64>().ok().filter(|id| id.to_string() == text) else {
        return refusal(3, "id is not a canonical int64");
    };
    if plants.lock().expect("no call panics").delete(id) {
        return StatusCode::NO_CONTENT.into_response();
    }
    refusal(5, &format!("plant {id} not found"))
}

fn refusal(error: i32, message: &str) -> Response {
    let record = serde_json::json!({ "error": error, "message": message }).to_string();
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "application/json")], record).into_response()
}
