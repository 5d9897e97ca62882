import { groupsOf, titleOf } from "./description.js";
import { element, find } from "./element.js";
import { showMethod, showPath } from "./endpoint.js";
import { linkToOperation, linkToOverview, linkToSchema } from "./route.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {{ group: HTMLElement, items: { item: HTMLElement, words: string }[] }} Section
 */

/**
 * Shows the list of operations, by service, and of schemas, and the search in it.
 *
 * @param {Description} description
 * @returns {(hash: string) => void} marks the link to the view that is shown
 */
export function showSidebar(description) {
  const sections = [...groupsOf(description).map(operationSection), ...schemaSection(description)];
  const list = find("list", HTMLElement);
  const start = element("a", { href: linkToOverview }, ["Overview"]);
  list.replaceChildren(element("p", { class: "start" }, [start]), ...sections.map(({ group }) => group));
  startSearch(sections);
  startMenu(list);
  return (hash) => {
    for (const link of list.querySelectorAll("a")) {
      if (link.hash === (hash || linkToOverview)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  };
}

/**
 * @param {import("./description.js").Group} group
 * @returns {Section}
 */
function operationSection({ name, operations }) {
  return section(
    name,
    operations.map((operation) => ({
      item: element("li", { class: operation.object.deprecated === true ? "deprecated" : "" }, [
        element("a", { href: linkToOperation(operation.id), title: titleOf(operation) }, [
          showMethod(operation),
          showPath(operation),
        ]),
      ]),
      words: wordsOf(operation, name),
    })),
  );
}

/**
 * @param {Operation} operation
 * @param {string} group
 */
function wordsOf({ method, path, id, object }, group) {
  const { summary = "", description = "" } = object;
  return [method, path, id, object["x-rpc"]?.procedure ?? "", group, summary, description].join(" ").toLowerCase();
}

/**
 * @param {Description} description
 * @returns {Section[]}
 */
function schemaSection({ components }) {
  const names = Object.keys(components?.schemas ?? {});
  if (names.length === 0) return [];
  const items = names.map((name) => ({
    item: element("li", {}, [element("a", { href: linkToSchema(name) }, [name])]),
    words: name.toLowerCase(),
  }));
  return [section("Schemas", items)];
}

/**
 * @param {string} title
 * @param {Section["items"]} items
 * @returns {Section}
 */
function section(title, items) {
  const list = element(
    "ul",
    {},
    items.map(({ item }) => item),
  );
  return { group: element("section", {}, [element("h2", {}, [title]), list]), items };
}

/** @param {Section[]} sections */
function startSearch(sections) {
  const input = find("search", HTMLInputElement);
  const found = find("found", HTMLElement);
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const { group, items } of sections) {
      for (const { item, words: text } of items) item.hidden = !words.every((word) => text.includes(word));
      const shown = items.filter(({ item }) => !item.hidden).length;
      group.hidden = shown === 0;
      count += shown;
    }
    found.textContent = input.value.trim() === "" ? "" : `${count} found`;
  };
  input.addEventListener("input", search);
  find("search-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    const first = sections.flatMap(({ items }) => items).find(({ item }) => !item.hidden);
    first?.item.querySelector("a")?.click();
  });
}

// On a narrow page the list is behind a button.
/** @param {HTMLElement} list */
function startMenu(list) {
  const button = find("menu", HTMLButtonElement);
  const sidebar = find("sidebar", HTMLElement);
  const open = (/** @type {boolean} */ isOpen) => {
    button.setAttribute("aria-expanded", String(isOpen));
    sidebar.classList.toggle("open", isOpen);
  };
  button.addEventListener("click", () => open(button.getAttribute("aria-expanded") !== "true"));
  list.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a") !== null) open(false);
  });
  find("search-form", HTMLFormElement).addEventListener("submit", () => open(false));
}
