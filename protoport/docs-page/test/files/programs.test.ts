import { expect, test } from "vitest";
import { writeFetch, writeGo, writePython } from "../../src/files/programs.ts";
import { callOf } from "../shell-call.ts";

// The suite browser runs the programs.

const { request } = callOf({});
const plain = callOf({ request: { ...request, method: "GET" } });
const posted = callOf({ needsToken: true, request: { ...request, headers: [["x-a", 'a"b']], body: '{"a":"\\n"}' } });
const uploaded = callOf({ request: { ...request, body: new File(["a"], 'a"b.txt') } });

test.each([
  {
    name: "without header fields and body",
    call: plain,
    want: `const response = await fetch("http://127.0.0.1:1/a", {
  method: "GET",
});
console.log(response.status);
console.log(await response.text());`,
  },
  {
    name: "with the token, a header field and a body",
    call: posted,
    want: String.raw`const response = await fetch("http://127.0.0.1:1/a", {
  method: "POST",
  headers: {
    Authorization: ${"`Bearer ${process.env.TOKEN}`"},
    "x-a": "a\"b",
  },
  body: "{\"a\":\"\\n\"}",
});
console.log(response.status);
console.log(await response.text());`,
  },
  {
    name: "with a file",
    call: uploaded,
    want: String.raw`import { readFile } from "node:fs/promises";

const response = await fetch("http://127.0.0.1:1/a", {
  method: "POST",
  body: await readFile("a\"b.txt"),
});
console.log(response.status);
console.log(await response.text());`,
  },
  {
    name: "that prints a stream as it arrives",
    call: { ...plain, isStream: true },
    want: `const response = await fetch("http://127.0.0.1:1/a", {
  method: "GET",
});
console.log(response.status);
for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);`,
  },
])("writeFetch writes a request $name as a program", ({ call, want }) => expect(writeFetch(call)).toBe(want));

const pythonImports = "from urllib.error import HTTPError\nfrom urllib.request import Request, urlopen\n";
const pythonEnd = `)
try:
    response = urlopen(request)
except HTTPError as error:
    response = error
print(response.status)
for line in response:
    print(line.decode())`;

test.each([
  {
    name: "without header fields and body",
    call: plain,
    want: `${pythonImports}
request = Request(
    "http://127.0.0.1:1/a",
    method="GET",
${pythonEnd}`,
  },
  {
    name: "with the token, a header field and a body",
    call: posted,
    want: String.raw`import os
${pythonImports}
request = Request(
    "http://127.0.0.1:1/a",
    method="POST",
    headers={
        "Authorization": f"Bearer {os.environ['TOKEN']}",
        "x-a": "a\"b",
    },
    data="{\"a\":\"\\n\"}".encode(),
${pythonEnd}`,
  },
  {
    name: "with a file",
    call: uploaded,
    want: String.raw`${pythonImports}
request = Request(
    "http://127.0.0.1:1/a",
    method="POST",
    data=open("a\"b.txt", "rb").read(),
${pythonEnd}`,
  },
])("writePython writes a request $name as a program", ({ call, want }) => expect(writePython(call)).toBe(want));

const goCheck = "\tif err != nil {\n\t\tpanic(err)\n\t}";
const goEnd = `\tresponse, err := http.DefaultClient.Do(request)
${goCheck}
\tdefer response.Body.Close()
\tfmt.Println(response.Status)
\tio.Copy(os.Stdout, response.Body)
}`;
const goStart = 'package main\n\nimport (\n\t"fmt"\n\t"io"\n\t"net/http"\n\t"os"\n';

test.each([
  {
    name: "without header fields and body",
    call: plain,
    want: `${goStart})

func main() {
\trequest, err := http.NewRequest("GET", "http://127.0.0.1:1/a", nil)
${goCheck}
${goEnd}`,
  },
  {
    name: "with the token, a header field and a body",
    call: posted,
    want: `${goStart}\t"strings"
)

func main() {
\trequest, err := http.NewRequest("POST", "http://127.0.0.1:1/a", strings.NewReader("{\\"a\\":\\"\\\\n\\"}"))
${goCheck}
\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
\trequest.Header.Set("x-a", "a\\"b")
${goEnd}`,
  },
  {
    name: "with a file",
    call: uploaded,
    want: `${goStart})

func main() {
\tfile, err := os.Open("a\\"b.txt")
${goCheck}
\trequest, err := http.NewRequest("POST", "http://127.0.0.1:1/a", file)
${goCheck}
${goEnd}`,
  },
])("writeGo writes a request $name as a program", ({ call, want }) => expect(writeGo(call)).toBe(want));
