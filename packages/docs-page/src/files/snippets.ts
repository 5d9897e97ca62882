// Formats a request as shell commands and as programs. Commands and programs read the token from an environment
// variable, because shells keep a history, and programs are shared.
import { element } from "./element.js";
import { createSelect } from "./inputs.js";
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

function writeFetch({ request: { method, url, headers, body }, needsToken, isStream }: Call): string {
  const fields = headers.map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  if (needsToken) fields.unshift("    Authorization: `Bearer ${process.env.TOKEN}`,");
  const file = body instanceof File ? JSON.stringify(body.name) : undefined;
  return [
    ...(file === undefined ? [] : ['import { readFile } from "node:fs/promises";\n']),
    `const response = await fetch(${JSON.stringify(url)}, {`,
    `  method: ${JSON.stringify(method)},`,
    ...(fields.length > 0 ? ["  headers: {", ...fields, "  },"] : []),
    ...(body === undefined
      ? []
      : [`  body: ${file === undefined ? JSON.stringify(body) : `await readFile(${file})`},`]),
    "});",
    "console.log(response.status);",
    isStream
      ? "for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);"
      : "console.log(await response.text());",
  ].join("\n");
}

function writePython({ request: { method, url, headers, body }, needsToken }: Call): string {
  const fields = headers.map(([name, value]) => `        ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  if (needsToken) fields.unshift(`        "Authorization": f"Bearer {os.environ['TOKEN']}",`);
  const data =
    body instanceof File ? `open(${JSON.stringify(body.name)}, "rb").read()` : `${JSON.stringify(body)}.encode()`;
  return [
    ...(needsToken ? ["import os"] : []),
    "from urllib.error import HTTPError",
    "from urllib.request import Request, urlopen\n",
    "request = Request(",
    `    ${JSON.stringify(url)},`,
    `    method=${JSON.stringify(method)},`,
    ...(fields.length > 0 ? ["    headers={", ...fields, "    },"] : []),
    ...(body === undefined ? [] : [`    data=${data},`]),
    ")",
    "try:",
    "    response = urlopen(request)",
    "except HTTPError as error:",
    "    response = error",
    "print(response.status)",
    "for line in response:",
    "    print(line.decode())",
  ].join("\n");
}

function writeGo({ request: { method, url, headers, body }, needsToken }: Call): string {
  const packages = ["fmt", "io", "net/http", "os", ...(typeof body === "string" ? ["strings"] : [])];
  const failing = "\tif err != nil {\n\t\tpanic(err)\n\t}";
  const text = typeof body === "string" ? `strings.NewReader(${JSON.stringify(body)})` : "nil";
  const content = body instanceof File ? "file" : text;
  return [
    "package main\n",
    `import (\n${packages.map((name) => `\t"${name}"`).join("\n")}\n)\n`,
    "func main() {",
    ...(body instanceof File ? [`\tfile, err := os.Open(${JSON.stringify(body.name)})`, failing] : []),
    `\trequest, err := http.NewRequest(${JSON.stringify(method)}, ${JSON.stringify(url)}, ${content})`,
    failing,
    ...(needsToken ? ['\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))'] : []),
    ...headers.map(([name, value]) => `\trequest.Header.Set(${JSON.stringify(name)}, ${JSON.stringify(value)})`),
    "\tresponse, err := http.DefaultClient.Do(request)",
    failing,
    "\tdefer response.Body.Close()",
    "\tfmt.Println(response.Status)",
    "\tio.Copy(os.Stdout, response.Body)",
    "}",
  ].join("\n");
}
