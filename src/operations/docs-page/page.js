// The docs page: reads the OpenAPI description beside it, shows every operation, and sends what the
// reader asks for to the server that the page came from. Plain DOM, no library, nothing from elsewhere.

const httpMethods = ["get", "put", "post", "delete", "options", "head", "patch"];

/** Makes an element with attributes and children; text is always text, never markup. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

function show({ info, paths }) {
  document.title = info.title;
  byId("title").textContent = info.title;
  byId("version").textContent = `Version ${info.version}, ${info.license?.name ?? "no"} licence`;
  byId("description").textContent = info.description ?? "";
  byId("description").className = "description";
  const sections = Object.entries(paths).flatMap(([path, item]) =>
    httpMethods.filter((method) => method in item).map((method) => operationSection(method, path, item)),
  );
  byId("operations").replaceChildren(...sections);
}

function operationSection(method, path, item) {
  const operation = item[method];
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
  const headingId = `operation-${operation.operationId}`;
  const heading = element("h2", { id: headingId });
  heading.append(element("span", { class: "method" }, method.toUpperCase()), element("span", { class: "path" }, path));
  return element(
    "section",
    { "aria-labelledby": headingId },
    heading,
    element("p", { class: "description" }, operation.description ?? operation.summary ?? ""),
    responseTable(operation.responses),
    requestForm(method, path, parameters, operation.operationId),
  );
}

function responseTable(responses) {
  const rows = Object.entries(responses).map(([status, { description, content }]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, status),
      element("td", {}, description),
      element("td", {}, Object.keys(content ?? {}).join(", ") || "no body"),
    ),
  );
  return element("table", {}, element("caption", {}, "Answers"), element("tbody", {}, ...rows));
}

function requestForm(method, path, parameters, operationId) {
  const fields = parameters.map((parameter) => parameterField(parameter, operationId));
  const answer = element("div", { class: "answer", role: "status", "aria-live": "polite" });
  const send = element("button", { type: "submit" }, `Send ${method.toUpperCase()}`);
  const form = element("form", { autocomplete: "off" }, ...fields.flatMap(({ label, input }) => [label, input]), send);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void sendRequest(method, addressOf(path, fields), answer);
  });
  return element("div", {}, form, answer);
}

function parameterField(parameter, operationId) {
  const id = `${operationId}-${parameter.in}-${parameter.name}`;
  const { type = "", format = "" } = parameter.schema ?? {};
  const hint = `${parameter.in}, ${[type, format].filter(Boolean).join(" ")}`;
  const label = element("label", { for: id }, parameter.name, " ", element("span", { class: "hint" }, hint));
  const input = element("input", { id, spellcheck: "false", inputmode: type === "integer" ? "numeric" : "text" });
  input.required = parameter.required === true;
  if (type === "integer") {
    // As text: an input of type number rounds what lies beyond 2^53.
    input.pattern = "-?[0-9]+";
    input.title = "a whole number";
  }
  return { parameter, label, input };
}

function addressOf(path, fields) {
  const query = new URLSearchParams();
  let filled = path;
  for (const { parameter, input } of fields) {
    const { name } = parameter;
    if (parameter.in === "path") filled = filled.replaceAll(`{${name}}`, encodeURIComponent(input.value));
    if (parameter.in === "query" && input.value !== "") query.append(name, input.value);
  }
  // Relative to the description, which lies at the root of the API: also behind a path prefix.
  const address = new URL(`.${filled}`, new URL("openapi.json", document.baseURI));
  address.search = query.toString();
  return address;
}

async function sendRequest(method, address, answer) {
  const token = byId("token").value.trim();
  const headers = token === "" ? {} : { authorization: `Bearer ${token}` };
  answer.replaceChildren("Sending …");
  try {
    const response = await fetch(address, {
      method: method.toUpperCase(),
      headers,
      redirect: "error",
      cache: "no-store",
    });
    const lines = [...response.headers].map(([name, value]) => `${name}: ${value}`);
    const body = await response.text();
    answer.dataset["ok"] = String(response.ok);
    answer.replaceChildren(
      element("strong", {}, `${response.status} ${response.statusText}`),
      element("pre", {}, [...lines, "", body === "" ? "(no body)" : body].join("\n")),
    );
  } catch (reason) {
    answer.dataset["ok"] = "false";
    answer.replaceChildren(element("strong", {}, "No answer"), element("pre", {}, String(reason)));
  }
}

byId("reveal").addEventListener("click", ({ currentTarget }) => {
  const reveal = currentTarget.getAttribute("aria-pressed") !== "true";
  currentTarget.setAttribute("aria-pressed", String(reveal));
  byId("token").type = reveal ? "text" : "password";
});
byId("credential").addEventListener("submit", (event) => event.preventDefault());

try {
  show(await (await fetch("openapi.json")).json());
} catch (reason) {
  byId("operations").replaceChildren(element("p", {}, `The description cannot be read: ${String(reason)}`));
}
