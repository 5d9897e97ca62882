import { withoutLineEnd } from "@protoport/auth/inputs";
import { readRegularFileSync } from "@protoport/command-line";
import {
  formatted,
  isOrigin,
  type Located,
  record,
  type ReportProblem,
  type SettingType,
} from "@protoport/command-line/settings";
import { messageOf } from "@protoport/gateway/errors";
import { isToken, requireField } from "@protoport/gateway/exchange";
import { isSettable } from "../upstreams/index.ts";
import { type ErrorBody, errorBodyProblems } from "@protoport/gateway/rest";

/** Maximum secret size in bytes. 64 KiB is longer than any header field that servers accept. */
const maxSecretBytes = 64 * 1024;

const source = {
  type: "object",
  additionalProperties: false,
  properties: { file: { type: "string" }, env: { type: "string" } },
  minProperties: 1,
  maxProperties: 1,
};

/** A secret, set as `{ file: PATH }` or `{ env: VARIABLE }`. Error messages never contain the secret. */
export const secret: SettingType<string> = {
  label: "`{ file: PATH }` or `{ env: NAME }`",
  schema: source,
  isSecret: true,
  read: (at, report) => {
    const [first, ...others] = at.value instanceof Map ? at.value : [];
    if (first === undefined || others.length > 0) return refuseSecret(at, report);
    const [kind, { value: name }] = first;
    if (typeof name !== "string" || (kind !== "file" && kind !== "env")) return refuseSecret(at, report);
    const read = kind === "file" ? readSecretFile(at, name, report) : process.env[name];
    if (read === undefined && kind === "env") report(at, `requires the environment variable ${name}, which is not set`);
    return read;
  },
};

/** Text, or a {@link secret}. Error messages never contain the value. */
const textOrSecret: SettingType<string> = {
  label: "text, `{ file: PATH }` or `{ env: NAME }`",
  schema: { oneOf: [{ type: "string" }, source] },
  isSecret: true,
  read: (at, report) => (typeof at.value === "string" ? at.value : secret.read(at, report)),
};

function refuseSecret(at: Located, report: ReportProblem): undefined {
  report(at, "must be { file: PATH } or { env: NAME }");
  return undefined;
}

function readSecretFile(at: Located, path: string, report: ReportProblem): string | undefined {
  try {
    return withoutLineEnd(readRegularFileSync(path, maxSecretBytes).toString("utf8"));
  } catch (error) {
    report(at, `requires a readable file: ${messageOf(error)}`);
  }
  return undefined;
}

const values = record(textOrSecret);

/** Header fields and their values. A value can be a secret, so messages never contain values. */
export const fieldValues: SettingType<Readonly<Record<string, string>>> = {
  ...values,
  read: (at, report) => {
    const fields = values.read(at, report);
    if (fields === undefined || !(at.value instanceof Map)) return undefined;
    for (const [name, located] of at.value) {
      if (!isSettable(name.toLowerCase()))
        report(
          { ...located, place: located.keyPlace ?? located.place },
          `must be a field that can be set, got "${name}"`,
        );
      else if (!isFieldValueText(fields[name] ?? ""))
        report(located, "has a value with a character that HTTP does not allow");
    }
    return fields;
  },
};

/** A forwarded header field's new name. */
export const newFieldName: SettingType<string> = formatted("text", "a field that can be set", (name) =>
  isSettable(name.toLowerCase()) ? name : undefined,
);

/** A header field's name, for CORS. */
export const fieldName: SettingType<string> = formatted("text", "the name of a header field", (name) =>
  isToken(name) ? name : undefined,
);

/** An origin, or `*`. */
export const originOrAny: SettingType<string> = formatted(
  "text",
  "* or an origin such as https://shop.example",
  (origin) => (origin === "*" || isOrigin(origin) ? origin : undefined),
);

/** Returns whether HTTP allows a field value (RFC 9110 §5.5). */
function isFieldValueText(value: string): boolean {
  try {
    requireField("x", value);
    return true;
  } catch {
    return false;
  }
}

/** The template of errors. Each problem has the place of its value. */
export const errorBody: SettingType<ErrorBody> = {
  label: "JSON object",
  schema: { type: "object" },
  read: (at, report) => {
    const template = toJson(at);
    const problems = [...errorBodyProblems(template)];
    for (const { path, problem } of problems) report(path.reduce(memberOf, at), problem);
    return problems.length === 0 && isTemplate(template) ? template : undefined;
  },
};

function isTemplate(value: unknown): value is ErrorBody {
  return typeof value === "object" && value !== null;
}

function memberOf(at: Located, name: string): Located {
  const { value } = at;
  return (value instanceof Map ? value.get(name) : Array.isArray(value) ? value[Number(name)] : undefined) ?? at;
}

function toJson({ value }: Located): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, each]) => [name, toJson(each)]));
  return Array.isArray(value) ? value.map(toJson) : value;
}
