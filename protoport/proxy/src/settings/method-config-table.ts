import { Code } from "@connectrpc/connect";
import type { SettingType } from "@protoport/command-line/settings";
import { formatted, integer, list, mapping, positiveNumber, text } from "@protoport/command-line/settings";

/** A `methodConfig` item, as in gRPC's service config. */
export interface MethodConfigSection {
  readonly name: readonly MethodNameSection[];
  readonly timeout?: number;
  readonly retryPolicy?: RetryPolicySection;
}

/** A name in a {@link MethodConfigSection}, which selects a method, all methods in a service, or all services. */
export interface MethodNameSection {
  readonly service: string;
  readonly method: string;
}

/** A retry policy in gRPC's service config. Durations are in milliseconds. */
interface RetryPolicySection {
  readonly maxAttempts: number;
  readonly initialBackoff: number;
  readonly maxBackoff: number;
  readonly backoffMultiplier: number;
  readonly retryableStatusCodes: readonly Code[];
}

/** A google.protobuf.Duration in JSON, read as milliseconds. */
const duration = formatted("duration, such as `1.5s`", "a duration between 0.001s and 86400s", (value) => {
  const ms = /^[0-9]{1,9}(?:\.[0-9]{1,9})?s$/.test(value) ? Number(value.slice(0, -1)) * 1_000 : Number.NaN;
  return ms >= 1 && ms <= 86_400_000 ? Math.round(ms) : undefined;
});

const codeOfName = new Map(
  Object.entries(Code).flatMap(([name, code]) =>
    typeof code === "number"
      ? [
          [
            name
              .replaceAll(/(?<!^)[A-Z]/g, "_$&")
              .toUpperCase()
              .replace("CANCELED", "CANCELLED"),
            code,
          ],
        ]
      : [],
  ),
);

const codeName = formatted<Code>("name", `one of ${[...codeOfName.keys()].join(", ")}`, (value) =>
  codeOfName.get(value.toUpperCase()),
);

const codeNumber = integer(Code.Canceled, Code.Unauthenticated);

const statusCode: SettingType<Code> = {
  label: "code, such as `UNAVAILABLE` or `14`",
  schema: { anyOf: [codeName.schema, codeNumber.schema] },
  read: (at, report) => (typeof at.value === "number" ? codeNumber : codeName).read(at, report),
};

/** Larger `maxAttempts` values count as 5 (gRFC A6). */
const maxAttempts = 5;

const attempts = integer(2, 2 ** 32 - 1);

const retryPolicy = mapping<RetryPolicySection>({
  maxAttempts: {
    type: {
      ...attempts,
      read: (at, report) => {
        const read = attempts.read(at, report);
        return read === undefined ? undefined : Math.min(read, maxAttempts);
      },
    },
    required: true,
    about: `Attempts with the first (gRFC A6); above ${maxAttempts} counts as ${maxAttempts}.`,
  },
  initialBackoff: { type: duration, required: true, about: "Wait before the second attempt, ±20 %." },
  maxBackoff: { type: duration, required: true, about: "Longest wait before an attempt." },
  backoffMultiplier: {
    type: positiveNumber(1_000),
    required: true,
    about: "Factor above 0 of each further wait.",
  },
  retryableStatusCodes: {
    type: list(statusCode),
    required: true,
    about: "Codes to retry. Calls may then be processed twice.",
  },
});

/** The type for the setting `methodConfig`. */
export const methodConfigType: SettingType<readonly MethodConfigSection[]> = list(
  mapping<MethodConfigSection>({
    name: {
      type: list(
        mapping<MethodNameSection>({
          service: { type: text(), fallback: "", about: "Full name. Default: all services." },
          method: { type: text(), fallback: "", about: "Name of its method. Default: all methods." },
        }),
      ),
      required: true,
      about: "RPCs; the most specific item applies. Each name occurs once.",
    },
    timeout: {
      type: duration,
      about: "Timeout of unary calls without a deadline, and longest timeout that callers can set, also for streams.",
    },
    retryPolicy: { type: retryPolicy, about: "Which failed calls are sent again (gRFC A6)." },
  }),
);
