import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, type DescMethodUnary, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { createValidator, violationsToProto } from "@bufbuild/protovalidate";
// oxfmt-ignore
import { type FieldPath, type Violation, ViolationsSchema
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { afterAll, expect, test } from "vitest";
import { rollMessage } from "../../../../testing/src/gateway/random-message.ts";
// oxfmt-ignore
import { buildLimitMs, buildStep, createTempFolder, createTestGateway, Dice, openPython, testSeed
} from "@protoport/testing";
import type { Gateway } from "../../../src/index.ts";
import { openValidation } from "../../../src/validation/index.ts";
import { readCaseTypes } from "./case-types.ts";

// For random messages, with the types by which protovalidate implementations are tested, the gateway finds the same
// violations as protovalidate in TypeScript and in Python.

const temporary = createTempFolder();
afterAll(() => temporary[Symbol.dispose]());
const folder = temporary.path;
const { registry, methods, descriptorsFile } = await readCaseTypes(folder);
const validation = await openValidation();
const validator = createValidator({ registry });

/** The sorted violations, each as path, rule and whether it concerns a key; or the error kind. */
type Verdict = { readonly violations?: readonly string[]; readonly error?: "compilation" | "runtime" };

const pathOf = (path: FieldPath | undefined): string =>
  (path?.elements ?? [])
    .map(({ fieldName, subscript }) => {
      const { value } = subscript;
      const key = typeof value === "bigint" ? String(value) : JSON.stringify(value);
      return fieldName + (value === undefined ? "" : `[${key}]`);
    })
    .join(".");

function verdictOf(violations: readonly Violation[]): Verdict {
  const lines = violations.map(
    ({ field, ruleId, forKey }) => `${pathOf(field)} ${ruleId} ${forKey ? "True" : "False"}`,
  );
  return { violations: lines.toSorted() };
}

function judgeDirectly(method: DescMethodUnary, bytes: Uint8Array): Verdict {
  const { kind, error, violations } = validator.validate(method.input, fromBinary(method.input, bytes));
  if (kind === "error") return { error: error.name === "CompilationError" ? "compilation" : "runtime" };
  return verdictOf(violationsToProto([...(violations ?? [])])[0].violations);
}

function startFor(method: DescMethodUnary): Gateway | undefined {
  try {
    return createTestGateway({ routes: (router) => router.rpc(method, () => ({})), validation });
  } catch (error) {
    expect(error).toMatchObject({ code: "ERR_DESCRIPTORS" });
    return undefined;
  }
}

async function judge(gateway: Gateway, { parent, name }: DescMethodUnary, body: Uint8Array): Promise<Verdict> {
  const headers = { "content-type": "application/proto", "connect-protocol-version": "1" };
  const url = `http://localhost/${parent.typeName}/${name}`;
  const response = await gateway.fetch(new Request(url, { method: "POST", headers, body: Buffer.from(body) }));
  if (response.status === 200) return { violations: [] };
  const error: { readonly message: string; readonly details?: readonly { readonly value: string }[] } = JSON.parse(
    await response.text(),
  );
  const [detail] = error.details ?? [];
  if (detail === undefined) {
    expect(error.message).toMatch(/^a validation rule cannot be evaluated: /);
    return { error: "runtime" };
  }
  return verdictOf(fromBinary(ViolationsSchema, Buffer.from(detail.value, "base64")).violations);
}

/** Returns the violations that the gateway lists, at most 20. */
function listed({ violations, error }: Verdict, verdict: Verdict): Verdict {
  if (violations === undefined) return error === undefined ? {} : { error };
  const shown = verdict.violations ?? [];
  if (violations.length <= 20) return { violations };
  expect(shown).toHaveLength(20);
  return { violations: violations.filter((violation) => shown.includes(violation)) };
}

/** Returns an empty message and random ones, encoded. */
function messagesOf({ input }: DescMethodUnary): readonly Uint8Array[] {
  const dice = new Dice(testSeed);
  const messages: readonly Message[] = [create(input), ...Array.from({ length: 6 }, () => rollMessage(dice, input))];
  return messages.flatMap((message) => {
    try {
      const bytes = toBinary(input, message);
      fromBinary(input, bytes);
      return [bytes];
    } catch {
      // A value that no encoder accepts.
      return [];
    }
  });
}

test("the gateway and protovalidate find the same violations", { timeout: buildLimitMs }, async () => {
  const lines: { readonly type: string; readonly message: string; readonly verdict: Verdict }[] = [];
  for (const method of methods) {
    const gateway = startFor(method);
    if (gateway === undefined) continue;
    for (const bytes of messagesOf(method)) {
      const verdict = await judge(gateway, method, bytes);
      const direct = judgeDirectly(method, bytes);
      expect(verdict, method.input.typeName).toEqual(listed(direct, verdict));
      lines.push({ type: method.input.typeName, message: Buffer.from(bytes).toString("base64"), verdict: direct });
    }
  }
  expect(lines.length).toBeGreaterThan(4_000);
  const [messages, verdicts] = ["messages.jsonl", "verdicts.jsonl"].map((name) => join(folder, name));
  writeFileSync(String(messages), lines.map((line) => JSON.stringify(line)).join("\n"));
  const programs = await openPython(join(import.meta.dirname, "requirements.txt"));
  const script = join(import.meta.dirname, "validate.py");
  await buildStep(join(programs, "python"), [script, descriptorsFile, String(messages), String(verdicts)]);
  const inPython: Verdict[] = readFileSync(String(verdicts), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const different = lines.flatMap(({ type, message, verdict }, at) => {
    const python = inPython[at];
    // CEL in Python has no durations beyond 2^63 ns, which are 292 years.
    const isTooLong = /PredefinedDuration/.test(type) && python?.error === "runtime";
    return isTooLong || JSON.stringify(verdict) === JSON.stringify(python) ? [] : [{ type, message, verdict, python }];
  });
  expect(different).toEqual([]);
});
