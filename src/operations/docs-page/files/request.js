// What the form says, as a request and as a line for a shell.

/** @typedef {import("./description.js").Operation} Operation */

// The page stands at <base URL>/docs. Not `servers`: behind a forwarded port those are elsewhere, and a token
// entered here must go to where the page came from and nowhere else.
const baseUrl = new URL(".", location.href).href.replace(/\/$/, "");

/**
 * Makes the URL of an operation. What the path still lacks stands in it as `{id}`, so that nobody takes it for whole.
 *
 * @param {Operation} operation
 * @param {ReadonlyMap<string, string>} values the parameters that were filled in, by place and name: `path id`
 * @returns {string}
 */
export function urlOf({ path, object }, values) {
  const filled = path.replaceAll(/\{([^}]*)\}/g, (gap, name) => {
    const value = values.get(`path ${name}`) ?? "";
    return value === "" ? gap : encodeURIComponent(value);
  });
  const query = new URLSearchParams();
  for (const { name, schema, in: place } of object.parameters ?? []) {
    const value = place === "query" ? values.get(`query ${name}`) : undefined;
    if (value === undefined || value === "") continue;
    // One line each, where a parameter may be repeated.
    for (const line of schema?.type === "array" ? value.split("\n") : [value]) query.append(name, line);
  }
  return `${baseUrl}${filled}${query.size === 0 ? "" : `?${query}`}`;
}

/**
 * Writes the request as a curl command. The token stays out of it, since commands are kept in histories.
 *
 * @param {string} method
 * @param {string} url
 * @param {{ needsToken: boolean, body: string | undefined }} request
 * @returns {string}
 */
export function curlOf(method, url, { needsToken, body }) {
  const parts = ["curl -i", `-X ${method}`];
  if (needsToken) parts.push('-H "Authorization: Bearer $TOKEN"');
  if (body !== undefined) parts.push("-H 'Content-Type: application/json'", `--data ${quote(body)}`);
  return [...parts, quote(url)].join(" \\\n  ");
}

/** @param {string} text */
function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Sends a request and waits for the whole answer.
 *
 * @param {string} method
 * @param {string} url
 * @param {{ token: string, body: string | undefined }} request
 * @returns {Promise<{ status: number, headers: [string, string][], text: string, durationMs: number }>}
 */
export async function send(method, url, { token, body }) {
  const headers = new Headers();
  if (token !== "") headers.set("authorization", `Bearer ${token}`);
  if (body !== undefined) headers.set("content-type", "application/json");
  const startMs = performance.now();
  /** @type {RequestInit} */
  const init = { method, headers, cache: "no-store", redirect: "manual", ...(body !== undefined && { body }) };
  const response = await fetch(url, init);
  const text = await response.text();
  return {
    status: response.status,
    headers: [...response.headers],
    text,
    durationMs: performance.now() - startMs,
  };
}
