/**
 * The documentation page's script. The script reads openapi.json, shows operations and schemas, and sends requests with
 * the user's token. Nothing is loaded from other hosts, and a token is kept only in the current tab.
 */
import { type Connection, showConnection } from "./connection.js";
import { type Description, operationsOf } from "./description.js";
import { element, find } from "./element.js";
import { readRoute } from "./route.js";
import { showSidebar } from "./sidebar.js";
import { operationView, overview, schemaView, type View } from "./views.js";

function show(description: Description): void {
  find("title", HTMLElement).textContent = description.info.title;
  const connection = showConnection(description);
  const markCurrentLink = showSidebar(description);
  const showView = (): boolean => {
    const view = viewOf(description, connection);
    if (view === undefined) return false;
    document.title = view.title;
    find("view", HTMLElement).replaceChildren(...view.content);
    markCurrentLink(location.hash);
    return true;
  };
  showView();
  addEventListener("beforeprint", expandAll);
  addEventListener("hashchange", () => {
    if (!showView()) return;
    scrollTo(0, 0);
    // Focus on the heading makes a screen reader announce the new view.
    find("view", HTMLElement).querySelector("h1")?.focus({ preventScroll: true });
  });
}

/** Opens all collapsed content until printing is finished. */
function expandAll(): void {
  const folded = [...document.querySelectorAll<HTMLDetailsElement>("#view details:not([open])")];
  for (const details of folded) details.open = true;
  addEventListener("afterprint", () => folded.forEach((details) => (details.open = false)), { once: true });
}

function viewOf(description: Description, connection: Connection): View | undefined {
  const route = readRoute(location.hash);
  if (route?.view === "operations") {
    const operation = operationsOf(description).find(({ id }) => id === route.name);
    if (operation !== undefined) return operationView(description, operation, connection);
  }
  if (route?.view === "schemas" && Object.hasOwn(description.components?.schemas ?? {}, route.name)) {
    return schemaView(description, route.name);
  }
  // An old link may name an operation or schema that no longer exists.
  return route === undefined ? undefined : overview(description, connection);
}

try {
  const response = await fetch("openapi.json");
  if (!response.ok) throw new Error(`the server responded with status ${response.status}`);
  show(await response.json());
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  const alert = element("p", { role: "alert" }, `Cannot load the API description: ${reason}.`);
  find("view", HTMLElement).replaceChildren(alert);
}
