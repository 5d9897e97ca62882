import { showAnswer } from "./answer.js";
import { mainMediaOf } from "./description.js";
import { element } from "./element.js";
import { acceptInputs, bodyInputs, parameterInputs } from "./inputs.js";
import { requestOf, send } from "./request.js";
import { messagesOf } from "./rpc.js";
import { snippetBox } from "./snippet-box.js";

/**
 * @typedef {import("./connection.js").Connection} Connection
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {import("./request.js").Input} Input
 * @typedef {import("./snippets.js").Call} Call
 */

/**
 * Shows the form that sends an operation, the answer, and the same request as a program.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @param {Connection} connection
 * @param {"h2" | "h3"} heading
 * @returns {HTMLElement}
 */
export function showTrying(description, operation, connection, heading) {
  const inputs = [parameterInputs(description, operation), bodyInputs(description, operation), acceptInputs(operation)];
  const outcome = element("p", { class: "outcome", role: "status" });
  const details = element("div", { class: "details" });
  const button = element("button", { type: "submit" }, [`Send ${operation.method}`]);
  const stop = element("button", { type: "button", class: "quiet", hidden: "" }, ["Stop"]);
  const buttons = element("div", { class: "row" }, [button, stop]);
  const form = element("form", {}, [...inputs.flatMap(({ fields }) => fields), buttons]);
  const { box, show } = snippetBox();

  const read = () => readInputs(inputs);
  const update = () => show(callOf(operation, read(), connection));
  const clear = () => {
    outcome.replaceChildren();
    details.replaceChildren();
  };
  const sendForm = async () => {
    clear();
    aborter = new AbortController();
    const { signal } = aborter;
    const startMs = performance.now();
    const request = requestOf(connection.baseUrl(), operation, read());
    try {
      const response = await send(request, connection.token(), signal);
      await showAnswer(description, operation, response, { startMs, outcome, details });
    } catch {
      if (signal.aborted) outcome.append(element("span", { class: "note" }, ["Stopped."]));
      else outcome.replaceChildren(...noAnswer());
    }
  };
  let aborter = new AbortController();
  form.addEventListener("input", update);
  // An earlier answer has nothing to do with input that is refused now.
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
  return element("div", { class: "trying" }, [
    element("section", {}, [element(heading, { class: "part" }, ["Try it"]), form, outcome, details]),
    element("section", {}, [element(heading, { class: "part" }, ["As a program"]), box]),
  ]);
}

/**
 * @param {import("./inputs.js").Inputs[]} inputs
 * @returns {Input}
 */
function readInputs(inputs) {
  /** @type {Input} */
  const nothing = { values: new Map(), body: undefined, contentType: undefined, accept: undefined };
  return inputs.reduce((input, { read }) => ({ ...input, ...read() }), nothing);
}

// Browsers do not tell a page why its request failed.
function noAnswer() {
  const why = "The server could not be reached, or it takes no calls from pages of this origin.";
  return [element("span", { class: "badge bad" }, ["no answer"]), element("span", { class: "meaning" }, [why])];
}

/**
 * @param {Operation} operation
 * @param {Input} input
 * @param {Connection} connection
 * @returns {Call}
 */
function callOf(operation, input, { baseUrl, needsToken }) {
  const { object } = operation;
  const body = typeof input.body === "string" ? input.body : "";
  const isLinewise = mainMediaOf(object.requestBody?.content)?.type !== "application/json";
  const bodies = (isLinewise ? body.split("\n") : [body]).filter((text) => text !== "");
  return {
    request: requestOf(baseUrl(), operation, input),
    needsToken,
    isStream: input.accept !== undefined,
    baseUrl: baseUrl(),
    procedure: object["x-rpc"]?.procedure,
    messages: messagesOf(operation, input.values, bodies),
  };
}
