// The input of the form, as a request and as a command for a shell.

/** @typedef {import("./description.js").Operation} Operation */

// The page is at <base URL>/docs. Not `servers`: with a forwarded port these are different, and a token that is
// entered here must only be sent to where the page came from.
const baseUrl = new URL(".", location.href).href.replace(/\/$/, "");

/**
 * Creates the URL of an operation. A missing parameter of the path stays visible as `{id}`.
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
    // A repeated parameter has one line per value.
    for (const line of schema?.type === "array" ? value.split("\n") : [value]) query.append(name, line);
  }
  return `${baseUrl}${filled}${query.size === 0 ? "" : `?${query}`}`;
}

/**
 * Writes the request as a curl command. It leaves out the token, because shells keep a history of commands.
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
 * Sends a request and waits for the whole response.
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
