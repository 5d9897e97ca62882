import { element } from "./element.js";

/**
 * Shows the part of CommonMark that comments use: paragraphs, lists of one level, and code in backticks.
 *
 * @param {string | undefined} text
 * @returns {HTMLElement[]}
 */
export function prose(text) {
  if (text === undefined || text === "") return [];
  return text.split(/\n{2,}/).map((block) => {
    const items = block.split(/^- /m).slice(1);
    if (!block.startsWith("- ")) return element("p", {}, inline(block));
    return element(
      "ul",
      {},
      items.map((item) => element("li", {}, inline(item.trim()))),
    );
  });
}

/**
 * @param {string} text
 * @returns {(Node | string)[]}
 */
function inline(text) {
  // Every second piece is between backticks.
  return text.split("`").map((piece, at) => (at % 2 === 1 ? element("code", {}, [piece]) : piece));
}
