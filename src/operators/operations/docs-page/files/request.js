// The input of a form, as a request.
import { parametersOfSegments } from "./rpc.js";

/**
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {{
 *   method: string, url: string, headers: [string, string][], body: string | File | undefined,
 * }} Request a request without its credential
 * @typedef {{
 *   values: ReadonlyMap<string, string>, accept: string | undefined,
 *   body: string | File | undefined, contentType: string | undefined,
 * }} Input what a person has entered: the parameters by place and name, such as `path id`, and the body
 */

/**
 * Creates the request of an operation.
 *
 * @param {string} baseUrl
 * @param {Operation} operation
 * @param {Input} input
 * @returns {Request}
 */
export function requestOf(baseUrl, operation, { values, accept, body, contentType }) {
  const headers = headersOf(operation, values);
  if (accept !== undefined) headers.push(["Accept", accept]);
  if (body !== undefined && contentType) headers.push(["Content-Type", contentType]);
  return { method: operation.method, url: urlOf(baseUrl, operation, values), headers, body };
}

/**
 * Returns the header fields of an operation that were filled in.
 *
 * @param {Operation} operation
 * @param {ReadonlyMap<string, string>} values
 * @returns {[string, string][]}
 */
function headersOf({ object }, values) {
  return (object.parameters ?? []).flatMap(({ name, in: place }) => {
    const value = place === "header" ? (values.get(`header ${name}`) ?? "") : "";
    return value === "" ? [] : [[name, value]];
  });
}

/**
 * Creates the URL of an operation. A missing parameter of the path stays visible as `{id}`.
 *
 * @param {string} baseUrl
 * @param {Operation} operation
 * @param {ReadonlyMap<string, string>} values
 * @returns {string}
 */
function urlOf(baseUrl, operation, values) {
  const ofSegments = parametersOfSegments(operation);
  const filled = operation.path.replaceAll(/\{([^}]*)\}/g, (gap, name) => {
    const value = values.get(`path ${name}`) ?? "";
    if (value === "") return gap;
    return ofSegments.has(name) ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
  });
  const query = queryOf(operation, values);
  return `${baseUrl}${filled}${query === "" ? "" : `?${query}`}`;
}

/**
 * @param {Operation} operation
 * @param {ReadonlyMap<string, string>} values
 */
function queryOf({ object }, values) {
  const query = new URLSearchParams();
  for (const { name, schema, in: place } of object.parameters ?? []) {
    const value = place === "query" ? values.get(`query ${name}`) : undefined;
    if (value === undefined || value === "") continue;
    // A repeated parameter has one line per value.
    for (const line of schema?.type === "array" ? value.split("\n") : [value]) query.append(name, line);
  }
  return String(query);
}

/**
 * Sends a request, and resolves when the header of its answer has arrived.
 *
 * @param {Request} request
 * @param {string} token the credential, or ""
 * @param {AbortSignal} signal
 * @returns {Promise<Response>}
 */
export async function send({ method, url, headers, body }, token, signal) {
  const fields = new Headers(headers);
  if (token !== "") fields.set("authorization", `Bearer ${token}`);
  /** @type {RequestInit} */
  const init = { method, headers: fields, signal, cache: "no-store", redirect: "manual", credentials: "omit" };
  return await fetch(url, { ...init, ...(body !== undefined && { body }) });
}
