/**
 * The page of the description: reads openapi.json, shows its operations, and lets a person send them with
 * their own token. Nothing is loaded from anywhere else, and nothing is kept beyond the tab.
 */
import { operationsOf } from "./description.js";
import { element, find } from "./element.js";
import { prose } from "./prose.js";
import { showReading } from "./reading.js";
import { showTrying } from "./trying.js";

/** @typedef {import("./description.js").Description} Description */

const tokenKey = "bearer token";

/** @param {Description} description */
function show(description) {
  const { info } = description;
  document.title = `${info.title} ${info.version}`;
  find("title", HTMLElement).textContent = info.title;
  const licence = info.license === undefined ? [] : [`${info.license.name} licence`];
  find("facts", HTMLElement).textContent = [`Version ${info.version}`, ...licence].join(" · ");
  find("about", HTMLElement).replaceChildren(...prose(info.description));
  const token = (description.security ?? []).length > 0 ? showCredential() : () => "";
  find("operations", HTMLElement).replaceChildren(
    ...operationsOf(description).map((operation) => {
      const heading = `${operation.object.operationId}-title`;
      const { method, path, object } = operation;
      const parts = path.split(/(\{[^}]*\})/).map((part) => (part.startsWith("{") ? element("em", {}, [part]) : part));
      return element("article", { class: "operation", "aria-labelledby": heading }, [
        element("header", {}, [
          element("p", { class: "line" }, [
            element("span", { class: `method ${method.toLowerCase()}` }, [method]),
            element("span", { class: "path" }, parts),
          ]),
          element("h2", { id: heading }, [object.summary ?? object.operationId]),
        ]),
        element("div", { class: "columns" }, [
          showReading(description, operation),
          showTrying(description, operation, token),
        ]),
      ]);
    }),
  );
}

/**
 * Shows the form for the token, and keeps it for this tab.
 *
 * @returns {() => string} the token at that moment, or ""
 */
function showCredential() {
  const form = find("credential", HTMLFormElement);
  const input = find("token", HTMLInputElement);
  const forget = find("forget", HTMLButtonElement);
  const note = find("token-note", HTMLElement);
  const token = () => sessionStorage.getItem(tokenKey) ?? "";
  const tell = () => {
    forget.hidden = token() === "";
    note.textContent =
      token() === ""
        ? "Goes with the requests of this page, and nowhere else."
        : "Kept until this tab is closed, and sent with the requests of this page.";
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // The whole line that the server prints may have been pasted.
    sessionStorage.setItem(tokenKey, input.value.trim().replace(/^(?:authorization:\s*)?bearer\s+/i, ""));
    input.value = "";
    tell();
  });
  forget.addEventListener("click", () => {
    sessionStorage.removeItem(tokenKey);
    tell();
    input.focus();
  });
  form.hidden = false;
  tell();
  return token;
}

try {
  const response = await fetch("openapi.json");
  if (!response.ok) throw new Error(`the answer was ${response.status}`);
  show(await response.json());
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  find("operations", HTMLElement).replaceChildren(
    element("p", { role: "alert" }, [`The description could not be loaded: ${reason}.`]),
  );
}
