/** Creates an element. Strings are inserted as text, so that a description or a response is never parsed as HTML. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

/** Finds an element on the page by its id and its type. */
export function find<Type extends HTMLElement>(id: string, type: new () => Type): Type {
  const foundElement = document.getElementById(id);
  if (!(foundElement instanceof type)) throw new Error(`the page has no element with the id "${id}"`);
  return foundElement;
}

/** Creates a paragraph with a remark. */
export function note(...text: readonly (Node | string)[]): HTMLElement {
  return element("p", { class: "note" }, ...text);
}

/** Creates an element for preformatted text that can be scrolled by keyboard. */
export function terminal(...content: readonly (Node | string)[]): HTMLElement {
  return element("pre", { class: "terminal", tabindex: "0" }, ...content);
}

/** Creates an element for content that is collapsed until the user opens it. */
export function collapsible(summary: string, ...content: readonly Node[]): HTMLElement {
  return element("details", {}, element("summary", {}, summary), ...content);
}
