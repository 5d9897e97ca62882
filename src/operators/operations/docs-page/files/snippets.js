// A request as a command for a shell, and as a program. They read the token from an environment variable, because
// shells keep a history of commands, and programs are shared.

/**
 * @typedef {import("./request.js").Request} Request
 * @typedef {{
 *   request: Request, needsToken: boolean, isStream: boolean,
 *   baseUrl: string, procedure: string | undefined, messages: string[],
 * }} Call a request, also as the messages of its RPC
 * @typedef {{ name: string, write: (call: Call) => string, isFor: (call: Call) => boolean }} Language
 */

/** @type {Language[]} */
export const languages = [
  { name: "curl", write: writeCurl, isFor: () => true },
  { name: "fetch", write: writeFetch, isFor: () => true },
  { name: "Python", write: writePython, isFor: () => true },
  { name: "Go", write: writeGo, isFor: () => true },
  // grpcurl cannot be given a path before that of the RPC.
  { name: "grpcurl", write: writeGrpcurl, isFor: (call) => isRpc(call) && new URL(call.baseUrl).pathname === "/" },
  { name: "buf", write: writeBuf, isFor: isRpc },
];

// In gRPC, a file is a field of bytes, which cannot be typed into a shell.
/** @param {Call} call */
function isRpc({ procedure, request }) {
  return procedure !== undefined && !(request.body instanceof File);
}

/** @param {Call} call */
function writeCurl({ request, needsToken, isStream }) {
  const { method, url, headers, body } = request;
  const parts = [`curl -i${isStream ? "N" : ""}`, `-X ${method}`];
  if (needsToken) parts.push('-H "Authorization: Bearer $TOKEN"');
  parts.push(...headers.map((field) => `-H ${quote(field.join(": "))}`));
  if (body !== undefined) parts.push(`--data-binary ${quote(typeof body === "string" ? body : `@${body.name}`)}`);
  return [...parts, quote(url)].join(" \\\n  ");
}

/** @param {Call} call */
function writeFetch({ request, needsToken, isStream }) {
  const { method, url, headers, body } = request;
  const fields = headers.map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  if (needsToken) fields.unshift("    Authorization: `Bearer ${process.env.TOKEN}`,");
  return lines([
    body instanceof File && 'import { readFile } from "node:fs/promises";\n',
    `const response = await fetch(${JSON.stringify(url)}, {`,
    `  method: ${JSON.stringify(method)},`,
    fields.length > 0 && ["  headers: {", ...fields, "  },"].join("\n"),
    body !== undefined && `  body: ${bodyOf(body, (name) => `await readFile(${name})`)},`,
    "});",
    "console.log(response.status);",
    isStream
      ? "for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);"
      : "console.log(await response.text());",
  ]);
}

/** @param {Call} call */
function writePython({ request, needsToken }) {
  const { method, url, headers, body } = request;
  const fields = headers.map(([name, value]) => `        ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  if (needsToken) fields.unshift('        "Authorization": f"Bearer {os.environ[\'TOKEN\']}",');
  return lines([
    needsToken && "import os",
    "from urllib.error import HTTPError",
    "from urllib.request import Request, urlopen\n",
    "request = Request(",
    `    ${JSON.stringify(url)},`,
    `    method=${JSON.stringify(method)},`,
    fields.length > 0 && ["    headers={", ...fields, "    },"].join("\n"),
    body !== undefined &&
      `    data=${typeof body === "string" ? `${JSON.stringify(body)}.encode()` : bodyOf(body, (name) => `open(${name}, "rb").read()`)},`,
    ")",
    "try:",
    "    response = urlopen(request)",
    "except HTTPError as error:",
    "    response = error",
    "print(response.status)",
    "for line in response:",
    "    print(line.decode())",
  ]);
}

/** @param {Call} call */
function writeGo({ request, needsToken }) {
  const { method, url, headers, body } = request;
  const isFile = body instanceof File;
  const packages = ["fmt", "io", "net/http", "os", ...(typeof body === "string" ? ["strings"] : [])];
  const failing = "\tif err != nil {\n\t\tpanic(err)\n\t}";
  const content =
    body === undefined
      ? "nil"
      : bodyOf(
          body,
          () => "file",
          (text) => `strings.NewReader(${text})`,
        );
  return lines([
    "package main\n",
    `import (\n${packages.map((name) => `\t"${name}"`).join("\n")}\n)\n`,
    "func main() {",
    isFile && `\tfile, err := os.Open(${JSON.stringify(body.name)})\n${failing}`,
    `\trequest, err := http.NewRequest(${JSON.stringify(method)}, ${JSON.stringify(url)}, ${content})`,
    failing,
    needsToken && '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))',
    ...headers.map(([name, value]) => `\trequest.Header.Set(${JSON.stringify(name)}, ${JSON.stringify(value)})`),
    "\tresponse, err := http.DefaultClient.Do(request)",
    failing,
    "\tdefer response.Body.Close()",
    "\tfmt.Println(response.Status)",
    "\tio.Copy(os.Stdout, response.Body)",
    "}",
  ]);
}

/** @param {Call} call */
function writeGrpcurl({ baseUrl, procedure = "", messages, needsToken }) {
  const { protocol, hostname, port } = new URL(baseUrl);
  const isPlain = protocol === "http:";
  const parts = [isPlain ? "grpcurl -plaintext" : "grpcurl"];
  if (needsToken) parts.push('-H "Authorization: Bearer $TOKEN"');
  parts.push(
    `-d ${quote(messages.join("\n"))}`,
    `${hostname}:${port || (isPlain ? "80" : "443")} ${procedure.slice(1)}`,
  );
  return parts.join(" \\\n  ");
}

/** @param {Call} call */
function writeBuf({ baseUrl, procedure = "", messages, needsToken }) {
  const parts = ["buf curl --protocol grpc"];
  if (baseUrl.startsWith("http:")) parts.push("--http2-prior-knowledge");
  if (needsToken) parts.push("--reflect-header '*'", '-H "Authorization: Bearer $TOKEN"');
  return [...parts, `-d ${quote(messages.join("\n"))}`, `${baseUrl}${procedure}`].join(" \\\n  ");
}

/**
 * @param {string | File} body
 * @param {(name: string) => string} ofFile
 * @param {(text: string) => string} ofText
 */
function bodyOf(body, ofFile, ofText = (text) => text) {
  return typeof body === "string" ? ofText(JSON.stringify(body)) : ofFile(JSON.stringify(body.name));
}

/** @param {(string | false)[]} parts */
function lines(parts) {
  return parts.filter((part) => part !== false).join("\n");
}

/** @param {string} text */
function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
