/**
 * The documentation page's script. The script reads openapi.json, shows operations and schemas, and sends requests with
 * the user's token. Nothing is loaded from other hosts, and a token is kept only in the current tab.
 */
import { type Connection, showConnection } from "./connection.js";
import { type Description, type Group, groupsOf, type Operation, operationsOf, titleOf } from "./description.js";
import { element, find } from "./element.js";
import { operationView, overview, schemaView, showEndpoint, type View } from "./views.js";
import { linkToOperation, linkToOverview, linkToSchema, readRoute } from "./route.js";

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

/** A link in the list, with the words that the search finds. */
interface Item {
  readonly item: HTMLElement;
  readonly words: string;
}

/** A heading with links below. */
interface Section {
  readonly group: HTMLElement;
  readonly items: readonly Item[];
}

/**
 * Shows the searchable list of operations, grouped by service, and schemas.
 *
 * @returns a function that marks the current view's link and, on a narrow page, hides the list
 */
function showSidebar(description: Description): (hash: string) => void {
  const sections = [...groupsOf(description).map(operationSection), ...schemaSection(description)];
  const list = find("list", HTMLElement);
  const start = element("p", {}, element("a", { href: linkToOverview }, "Overview"));
  list.replaceChildren(start, ...sections.map(({ group }) => group));
  startSearch(sections);
  return (hash) => {
    find("navigation", HTMLElement).hidePopover();
    for (const link of list.querySelectorAll("a")) {
      link.ariaCurrent = link.hash === (hash || linkToOverview) ? "page" : null;
    }
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  };
}

function operationSection({ name, operations }: Group): Section {
  return section(
    name,
    operations.map((operation) => {
      const link = element(
        "a",
        { href: linkToOperation(operation.id), title: titleOf(operation) },
        ...showEndpoint(operation),
      );
      const item = element("li", { class: operation.object.deprecated === true ? "deprecated" : "" }, link);
      return { item, words: wordsOf(operation, name) };
    }),
  );
}

function wordsOf({ method, path, id, object }: Operation, group: string): string {
  const { summary = "", description = "" } = object;
  return [method, path, id, object["x-rpc"]?.procedure ?? "", group, summary, description].join(" ").toLowerCase();
}

function schemaSection({ components }: Description): Section[] {
  const items = Object.keys(components?.schemas ?? {}).map((name) => ({
    item: element("li", {}, element("a", { href: linkToSchema(name) }, name)),
    words: name.toLowerCase(),
  }));
  return items.length === 0 ? [] : [section("Schemas", items)];
}

function section(title: string, items: readonly Item[]): Section {
  const list = element("ul", {}, ...items.map(({ item }) => item));
  return { group: element("section", {}, element("h2", {}, title), list), items };
}

function startSearch(sections: readonly Section[]): void {
  const input = find("search", HTMLInputElement);
  const matchCount = find("found", HTMLElement);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const { group, items } of sections) {
      for (const { item, words: text } of items) item.hidden = !words.every((word) => text.includes(word));
      const visibleCount = items.filter(({ item }) => !item.hidden).length;
      group.hidden = visibleCount === 0;
      count += visibleCount;
    }
    matchCount.textContent = input.value.trim() === "" ? "" : `${count} found`;
  });
  find("search-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    const first = sections.flatMap(({ items }) => items).find(({ item }) => !item.hidden);
    first?.item.querySelector("a")?.click();
  });
}
