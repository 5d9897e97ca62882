// The part of the URL after "#" names a view of the page, so that links to views can be kept and sent.

/** @typedef {{ view: "overview" } | { view: "operation" | "schema", name: string }} Route */

const views = /^#\/(operations|schemas)\/(.+)$/;

/**
 * Reads the view from the part of a URL after "#".
 *
 * @param {string} hash
 * @returns {Route | undefined} `undefined` if it leads to a place within the page
 */
export function readRoute(hash) {
  if (hash === "" || hash === "#" || hash === "#/") return { view: "overview" };
  const [, kind, name = ""] = views.exec(hash) ?? [];
  if (kind === undefined) return undefined;
  return { view: kind === "schemas" ? "schema" : "operation", name: decodeURIComponent(name) };
}

/**
 * Returns the link to an operation.
 *
 * @param {string} id
 */
export function linkToOperation(id) {
  return `#/operations/${encodeURIComponent(id)}`;
}

/**
 * Returns the link to a schema of the components.
 *
 * @param {string} name
 */
export function linkToSchema(name) {
  return `#/schemas/${encodeURIComponent(name)}`;
}

/** The link to the overview. */
export const linkToOverview = "#/";
