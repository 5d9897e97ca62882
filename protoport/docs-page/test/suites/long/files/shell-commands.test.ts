import { expect, test } from "vitest";
import { type Call, writeBuf, writeCurl, writeGrpcurl } from "../../../../src/files/shell-commands.ts";
import { runProgram } from "@protoport/testing/process";
import { callOf } from "../../../shell-call.ts";

/** Strings that a shell would run, expand or split if they were not quoted. */
const hostile = ["a;touch${IFS}x;b", "$(id)", "`id`", "a b", "a'b'c", 'a"b', "*", "a\nb", "~root", "-o", "a\\b", "é"];

/** Returns the arguments that a shell passes to a command's program. */
async function wordsOf(command: string): Promise<readonly string[]> {
  const print = String.raw`printf '%s\0' "$@"`;
  const programs = ["curl", "grpcurl", "buf"].map((name) => `${name}() { ${print}; }`).join("\n");
  const { exitCode, stdout, stderr } = await runProgram("sh", ["-c", `${programs}\n${command}`]);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return stdout.split("\0").slice(0, -1);
}

test.each(hostile)("the name %j is quoted as one argument for grpcurl and buf", async (text) => {
  const call = callOf({ procedure: `/shop.${text}.Shop/Get`, messages: [text] });
  expect(await wordsOf(writeGrpcurl(call))).toEqual([
    "-plaintext",
    "-d",
    text,
    "127.0.0.1:8080",
    `shop.${text}.Shop/Get`,
  ]);
  expect((await wordsOf(writeBuf(call))).slice(-3)).toEqual([
    "-d",
    text,
    `http://127.0.0.1:8080/shop.${text}.Shop/Get`,
  ]);
});

test.each(hostile)("%j in a method, header or body is quoted for curl", async (text) => {
  const request: Call["request"] = {
    method: `M${text}`,
    url: `http://127.0.0.1:1/${text}`,
    headers: [["x-a", text]],
    body: text,
  };
  const want = ["-i", "-X", `M${text}`, "-H", `x-a: ${text}`, "--data-binary", text, `http://127.0.0.1:1/${text}`];
  expect(await wordsOf(writeCurl(callOf({ request })))).toEqual(want);
});
