import { element } from "./element.js";

/** @typedef {import("./description.js").Operation} Operation */

/**
 * Shows the HTTP method of an operation.
 *
 * @param {Operation} operation
 * @returns {HTMLElement}
 */
export function showMethod({ method }) {
  return element("span", { class: `method ${method.toLowerCase()}` }, [method]);
}

/**
 * Shows the path of an operation with its parameters marked; a long path is broken before a slash.
 *
 * @param {Operation} operation
 * @returns {HTMLElement}
 */
export function showPath({ path }) {
  const parts = path.split(/(\{[^}]*\})|(?=\/)/).filter((part) => part);
  const shown = parts.flatMap((part) => (part.startsWith("{") ? [element("em", {}, [part])] : [element("wbr"), part]));
  return element("span", { class: "path" }, shown);
}
