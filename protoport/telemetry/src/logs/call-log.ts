import { Code } from "@connectrpc/connect";
import { type CompletedRequest, errorCodeOf, optionOf } from "@protoport/gateway";
import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { isFaultCode } from "./safe-errors.ts";
import type { Log } from "./log.ts";
import { requestIdOf } from "./request-id.ts";

/** Options for {@link createCallLog}. */
export interface CallLogOptions {
  readonly log: Log;
  /** The log for the audit trail, which may have another level. The default is `log`. */
  readonly auditLog?: Log | undefined;
  /** The log for the audit trail's deletions. The default is `auditLog`. */
  readonly deletionLog?: Log | undefined;
  /** Returns the audit trail that records a call, and additional fields for the log line. */
  readonly auditOf: (request: AuditedCall) => CallAudit;
  /** Returns whether a request is not logged. By default, all requests are logged. */
  readonly isSilent?: ((request: CompletedRequest) => boolean) | undefined;
}

const callLogOptionNames: OptionNames<CallLogOptions> = {
  log: required,
  auditLog: true,
  deletionLog: true,
  auditOf: required,
  isSilent: true,
};

/** The request properties that `auditOf` gets. */
export type AuditedCall = Pick<CompletedRequest, "procedure" | "contextValues" | "error">;

/** The audit trail that records a call, and additional fields for the log line. */
export interface CallAudit {
  /** The audit trail that records the call, if any. */
  readonly trail: "refusals" | "deletions" | undefined;
  /** Fields such as the caller, the reason why its credential was refused, and the call's resource. */
  readonly fields: object;
}

type CallLevel = "info" | "warn" | "error";

/** Maximum number of characters that are logged from a path. No route matches a longer path. */
const maxPathLength = 256;

/**
 * Creates a function that logs one line per request. Returns `undefined` if the log levels disable all lines,
 * so that the caller need not collect the data for them.
 *
 * The level is `info` for successes and refusals, `warn` for `Unavailable`, `ResourceExhausted` and `DeadlineExceeded`,
 * and `error` for faults. Headers are never logged.
 *
 * @throws TypeError for unknown options
 */
export function createCallLog(options: CallLogOptions): ((request: CompletedRequest) => void) | undefined {
  refuseUnknownOptions(options, callLogOptionNames, "createCallLog");
  const { log, auditLog = log, deletionLog = auditLog, auditOf, isSilent } = options;
  const trails = { refusals: auditLog, deletions: deletionLog };
  const isEnabled = (level: CallLevel): boolean =>
    log.isLevelEnabled(level) || auditLog.isLevelEnabled(level) || deletionLog.isLevelEnabled(level);
  if (!isEnabled("error")) return undefined;
  return (request) => {
    const level = levelOf(request.error?.code);
    // Building a line is expensive. At level "warn", a successful call costs only this check.
    if (!isEnabled(level) || isSilent?.(request) === true) return;
    const { trail, fields } = auditOf(request);
    const target = trail === undefined ? log : trails[trail];
    if (target.isLevelEnabled(level)) target[level]({ ...loggedFieldsOf(request), ...fields }, "call");
  };
}

function levelOf(code: Code | undefined): CallLevel {
  if (code === undefined) return "info";
  if (isFaultCode(code)) return "error";
  const isOverload = code === Code.Unavailable || code === Code.ResourceExhausted || code === Code.DeadlineExceeded;
  return isOverload ? "warn" : "info";
}

function loggedFieldsOf(request: CompletedRequest): object {
  return {
    requestId: requestIdOf(request.contextValues),
    // Undefined fields do not appear in the JSON line.
    procedure: request.procedure,
    protocol: request.protocol,
    httpMethod: request.httpMethod,
    path: request.path.slice(0, maxPathLength),
    httpStatus: request.httpStatus,
    code: loggedCodeOf(request),
    errorCode: request.error && errorCodeOf(request.error),
    option: request.error && optionOf(request.error),
    durationMs: Math.round(request.durationMs * 1000) / 1000,
    peer: request.peer.address,
  };
}

// A request that is not an RPC, such as a probe, has a code only if it was refused.
function loggedCodeOf({ error, procedure }: CompletedRequest): string | undefined {
  if (error !== undefined) return Code[error.code];
  return procedure === undefined ? undefined : "OK";
}
