import { Code } from "@connectrpc/connect";
import type { SettingType } from "./setting.ts";
import { integer, list, mapping, number, text } from "./setting-types.ts";

/** An item of `methodConfig`, in the form of gRPC's service config. */
export interface MethodConfigFile {
  readonly name: readonly MethodNameFile[];
  readonly timeout: number | undefined;
  readonly retryPolicy: RetryPolicyFile | undefined;
}

/** The RPCs of a {@link MethodConfigFile}: a method, all methods of a service, or all. */
export interface MethodNameFile {
  readonly service: string;
  readonly method: string;
}

/** A retry policy of gRPC's service config; durations are in milliseconds. */
export interface RetryPolicyFile {
  readonly maxAttempts: number;
  readonly initialBackoff: number;
  readonly maxBackoff: number;
  readonly backoffMultiplier: number;
  readonly retryableStatusCodes: readonly Code[];
}

/** A duration in the JSON form of google.protobuf.Duration, read as milliseconds. */
const duration = text("duration, such as `1.5s`", (value) => {
  const ms = /^[0-9]{1,9}(?:\.[0-9]{1,9})?s$/.test(value) ? Number(value.slice(0, -1)) * 1_000 : Number.NaN;
  if (ms >= 1 && ms <= 86_400_000) return Math.round(ms);
  throw new Error(`must be a duration between 0.001s and 86400s, got ${JSON.stringify(value)}`);
});

const codeNames = new Map(
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

const statusCode = text<Code>("code, such as `UNAVAILABLE`", (value) => {
  const code = codeNames.get(value.toUpperCase());
  if (code !== undefined) return code;
  throw new Error(`must be one of ${[...codeNames.keys()].join(", ")}, got ${JSON.stringify(value)}`);
});

const retryPolicy = mapping<RetryPolicyFile>({
  maxAttempts: { type: integer(2, 5), required: true, about: "Maximum attempts, including the first." },
  initialBackoff: { type: duration, required: true, about: "Wait before the second attempt, ±20 %." },
  maxBackoff: { type: duration, required: true, about: "Longest wait before an attempt." },
  backoffMultiplier: {
    type: number(1, 1_000),
    required: true,
    about: "Factor by which the wait grows with each attempt.",
  },
  retryableStatusCodes: {
    type: list(statusCode),
    required: true,
    about: "Codes to retry. Calls may then be processed twice.",
  },
});

/** The type of `methodConfig`. */
export const methodConfigType: SettingType<readonly MethodConfigFile[]> = list(
  mapping<MethodConfigFile>({
    name: {
      type: list(
        mapping<MethodNameFile>({
          service: { type: text(), fallback: "", about: "Full name of the service. Default: all services." },
          method: { type: text(), fallback: "", about: "Name of the method. Default: all methods of the service." },
        }),
      ),
      required: true,
      about: "RPCs of this item; the most specific item applies.",
    },
    timeout: {
      type: duration,
      about:
        "Timeout of unary calls without a deadline, and the longest deadline that callers can set, also for streams.",
    },
    retryPolicy: { type: retryPolicy, about: "Which failed calls are sent again (gRFC A6)." },
  }),
);
