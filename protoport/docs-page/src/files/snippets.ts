// Shows a request as a shell command or as a program.
import { element } from "./element.js";
import { createSelect } from "./inputs.js";
import { writeFetch, writeGo, writePython } from "./programs.js";
import { type Call, writeBuf, writeCurl, writeGrpcurl } from "./shell-commands.js";

const writers: Readonly<Record<string, (call: Call) => string>> = {
  curl: writeCurl,
  fetch: writeFetch,
  Python: writePython,
  Go: writeGo,
  grpcurl: writeGrpcurl,
  buf: writeBuf,
};

const languageKey = "language";

/** Creates a box that shows requests in the selected language, which the page remembers. */
export function snippetBox(): { readonly box: HTMLElement; readonly show: (call: Call) => void } {
  const text = element("pre", { class: "terminal command", tabindex: "0", "aria-label": "The request as a program" });
  const language = createSelect("language", []);
  const label = element("label", { class: "visually-hidden", for: "language" }, "Language");
  let shownCall: Call | undefined;
  const write = (): void => {
    text.textContent = shownCall === undefined ? "" : (writers[language.value]?.(shownCall) ?? "");
  };
  const show = (call: Call): void => {
    const names = Object.keys(writers).filter((name) => isFor(name, call));
    language.replaceChildren(...createSelect("", names).children);
    const remembered = sessionStorage.getItem(languageKey) ?? "";
    language.value = names.includes(remembered) ? remembered : "curl";
    shownCall = call;
    write();
  };
  language.addEventListener("change", () => {
    sessionStorage.setItem(languageKey, language.value);
    write();
  });
  return {
    box: element("div", {}, element("div", { class: "row" }, label, language, ...copyButton(text)), text),
    show,
  };
}

function copyButton(source: HTMLElement): HTMLElement[] {
  // Over plain HTTP, browsers provide the clipboard only for pages on localhost.
  if (!("clipboard" in navigator)) return [];
  const button = element("button", { type: "button", class: "quiet" }, "Copy");
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(source.textContent ?? "");
    button.textContent = "Copied";
  };
  button.addEventListener("click", () => void copy());
  return [button];
}

function isFor(name: string, { procedure, request, baseUrl }: Call): boolean {
  if (name !== "grpcurl" && name !== "buf") return true;
  // A file's content cannot be typed into a shell command.
  const hasMessages = procedure !== undefined && !(request.body instanceof File);
  // grpcurl does not support a path prefix.
  return hasMessages && (name === "buf" || new URL(baseUrl).pathname === "/");
}
