import { withoutLineEnd } from "@protoport/auth/inputs";
import { messageOf } from "@protoport/gateway/errors";
import { readRegularFileSync } from "@protoport/command-line";
import type { Located, ReportProblem, SettingType } from "@protoport/command-line/settings";

/** Maximum secret size in bytes. 64 KiB is longer than any header field that servers accept. */
const secretMaxBytes = 64 * 1024;

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
export const textOrSecret: SettingType<string> = {
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
    return withoutLineEnd(readRegularFileSync(path, secretMaxBytes).toString("utf8"));
  } catch (error) {
    report(at, `requires a readable file: ${messageOf(error)}`);
  }
  return undefined;
}
