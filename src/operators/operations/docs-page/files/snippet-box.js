import { element } from "./element.js";
import { languages } from "./snippets.js";

/** @typedef {import("./snippets.js").Call} Call */

const languageKey = "language";

/**
 * Shows a request in the language that a person chooses, which the page remembers.
 *
 * @returns {{ box: HTMLElement, show: (call: Call) => void }}
 */
export function snippetBox() {
  const text = element("pre", { class: "terminal command", tabindex: "0", "aria-label": "The request as a program" });
  const choices = element("fieldset", { class: "choices" }, [element("legend", { class: "unseen" }, ["Language"])]);
  /** @type {Call | undefined} */
  let shown;
  const write = () => {
    const fitting = languages.filter(({ isFor }) => shown !== undefined && isFor(shown));
    const remembered = sessionStorage.getItem(languageKey);
    const chosen = fitting.find(({ name }) => name === remembered) ?? fitting[0];
    const names = fitting.map(({ name }) => name);
    if (choices.dataset["names"] !== names.join()) {
      choices.dataset["names"] = names.join();
      choices.replaceChildren(
        ...[...choices.children].slice(0, 1),
        ...names.map((name) => choice(name, name === chosen?.name)),
      );
    }
    text.textContent = shown === undefined ? "" : (chosen?.write(shown) ?? "");
  };
  choices.addEventListener("change", ({ target }) => {
    if (target instanceof HTMLInputElement) sessionStorage.setItem(languageKey, target.value);
    write();
  });
  const show = (/** @type {Call} */ call) => {
    shown = call;
    write();
  };
  return { box: element("div", { class: "snippet" }, [choices, text, ...copyButton(text)]), show };
}

/**
 * @param {string} name
 * @param {boolean} isChosen
 */
function choice(name, isChosen) {
  const input = element("input", { type: "radio", name: "language", value: name });
  input.checked = isChosen;
  return element("label", {}, [input, element("span", {}, [name])]);
}

/** @param {HTMLElement} source */
function copyButton(source) {
  // Over plain http, browsers only offer the clipboard to pages of the same machine.
  if (!("clipboard" in navigator)) return [];
  const button = element("button", { type: "button", class: "quiet small copy" }, ["Copy"]);
  const copy = async () => {
    await navigator.clipboard.writeText(source.textContent ?? "");
    button.textContent = "Copied";
  };
  button.addEventListener("click", () => void copy());
  return [button];
}
