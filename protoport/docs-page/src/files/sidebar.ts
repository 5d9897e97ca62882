import { type Description, type Group, groupsOf, type Operation, titleOf } from "./description.js";
import { element, find } from "./element.js";
import { showEndpoint } from "./endpoint.js";
import { linkToOperation, linkToOverview, linkToSchema } from "./route.js";

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
export function showSidebar(description: Description): (hash: string) => void {
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
