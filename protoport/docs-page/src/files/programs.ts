// Formats a request as a program. Shell commands and programs read the token from an environment variable, because
// shells keep a history, and programs are shared.
import type { Call } from "./shell-commands.js";

/** Returns a JavaScript program for Node.js. */
export function writeFetch({ request: { method, url, headers, body }, needsToken, isStream }: Call): string {
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

/** Returns a Python program. */
export function writePython({ request: { method, url, headers, body }, needsToken }: Call): string {
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

/** Returns a Go program. */
export function writeGo({ request: { method, url, headers, body }, needsToken }: Call): string {
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
