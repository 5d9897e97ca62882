import type { Connection } from "./connection.js";
import { type Description, mainMediaOf, type Operation } from "./description.js";
import { element } from "./element.js";
import type { Input } from "./filled-in.js";
import { acceptInputs, bodyInputs, createSelect, type Inputs, parameterInputs } from "./inputs.js";
import { writeFetch, writeGo, writePython } from "./programs.js";
import { requestOf, send } from "./request.js";
import { showResponse } from "./response.js";
import { messagesOf } from "./rpc.js";
import { type Call, writeBuf, writeCurl, writeGrpcurl } from "./shell-commands.js";

/** Shows the form for a request, the response, and the request as a command or program. */
export function showTryIt(
  description: Description,
  operation: Operation,
  connection: Connection,
  heading: "h2" | "h3",
): HTMLElement {
  const { object } = operation;
  const inputs = [parameterInputs(description, object), bodyInputs(description, object), acceptInputs(object)];
  const outcome = element("p", { class: "outcome", role: "status" });
  const details = element("div", { class: "details" });
  const button = element("button", { type: "submit" }, `Send ${operation.method}`);
  const stop = element("button", { type: "button", class: "quiet", hidden: "" }, "Stop");
  const buttons = element("div", { class: "row" }, button, stop);
  const form = element("form", {}, ...inputs.flatMap(({ fields }) => fields), buttons);
  const { box, show } = snippetBox();
  let aborter = new AbortController();

  const update = (): void => show(callOf(operation, readInputs(inputs), connection));
  const clear = (): void => {
    outcome.replaceChildren();
    details.replaceChildren();
  };
  const sendForm = async (): Promise<void> => {
    clear();
    aborter = new AbortController();
    const { signal } = aborter;
    const startMs = performance.now();
    const request = requestOf(connection.baseUrl(), operation, readInputs(inputs));
    let response: Response | undefined;
    try {
      response = await send(request, connection.token(), signal);
      await showResponse(description, operation, response, { startMs, outcome, details });
    } catch {
      if (signal.aborted) outcome.append(element("span", { class: "note" }, "Stopped."));
      else if (response === undefined) outcome.replaceChildren(...noResponse());
      else outcome.append(...incompleteResponse());
    }
  };
  form.addEventListener("input", update);
  // The previous response is removed, because it does not belong to the invalid input.
  form.addEventListener("invalid", clear, { capture: true });
  stop.addEventListener("click", () => aborter.abort());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    [button.disabled, stop.hidden] = [true, false];
    void sendForm().finally(() => {
      [button.disabled, stop.hidden] = [false, true];
    });
  });
  connection.onChange(update);
  update();
  const part = (title: string): HTMLElement => element(heading, { class: "part" }, title);
  return element(
    "div",
    { class: "try-it" },
    element("section", {}, part("Try it"), form, outcome, details),
    element("section", {}, part("As a program"), box),
  );
}

function readInputs(inputs: readonly Inputs[]): Input {
  const emptyInput: Input = { values: new Map(), body: undefined, contentType: undefined, accept: undefined };
  return inputs.reduce((input, { read }) => ({ ...input, ...read() }), emptyInput);
}

// The message names both possible causes, because browsers do not expose why a request failed.
function noResponse(): HTMLElement[] {
  const cause = "Cannot reach the server, or it does not allow requests from pages of this origin (CORS).";
  return [element("span", { class: "badge bad" }, "no response"), element("span", {}, cause)];
}

function incompleteResponse(): HTMLElement[] {
  const cause = "The connection was lost before the end of the response.";
  return [element("span", { class: "badge bad" }, "incomplete"), element("span", {}, cause)];
}

function callOf(operation: Operation, input: Input, { baseUrl, needsToken }: Connection): Call {
  const { object } = operation;
  const body = typeof input.body === "string" ? input.body : "";
  const hasLines = mainMediaOf(object.requestBody?.content)?.type !== "application/json";
  const bodies = (hasLines ? body.split("\n") : [body]).filter((text) => text !== "");
  return {
    request: requestOf(baseUrl(), operation, input),
    needsToken: needsToken(object),
    isStream: input.accept !== undefined,
    baseUrl: baseUrl(),
    procedure: object["x-rpc"]?.procedure,
    messages: messagesOf(operation, input, bodies),
  };
}

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
function snippetBox(): { readonly box: HTMLElement; readonly show: (call: Call) => void } {
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
