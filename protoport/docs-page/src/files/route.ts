// The URL's fragment names a view, so that links to views can be shared.

/** The link to the overview. */
export const linkToOverview = "#/";

const views = /^#\/(operations|schemas)\/(.+)$/;

/** Returns the view that a URL's fragment names, or `undefined` for an anchor within the page. */
export function readRoute(hash: string): { view: "overview" | "operations" | "schemas"; name: string } | undefined {
  if (hash === "" || hash === "#" || hash === linkToOverview) return { view: "overview", name: "" };
  const [, view, name = ""] = views.exec(hash) ?? [];
  if (view === undefined) return undefined;
  return { view: view === "schemas" ? "schemas" : "operations", name: decode(name) };
}

/** Decodes a name. A name with an invalid percent sign is returned unchanged, and names nothing. */
function decode(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Returns the link to an operation, by its id. */
export function linkToOperation(id: string): string {
  return `#/operations/${encodeURIComponent(id)}`;
}

/** Returns the link to a component schema, by its name. */
export function linkToSchema(name: string): string {
  return `#/schemas/${encodeURIComponent(name)}`;
}
