import { Code, ConnectError } from "@connectrpc/connect";
import { type NamedOption, type ProblemName, problems } from "../http/index.ts";

/** Optional properties of the error that {@link problem} creates. */
export interface ProblemDetails {
  /** Replaces the code from {@link problems}. A replaced code has its standard HTTP status. */
  readonly code?: Code;
  /** Replaces the HTTP status that {@link problems} defines for REST. */
  readonly httpStatus?: number;
  /** The thrown value that caused the error. Clients never get the cause. */
  readonly cause?: unknown;
  /** The option that accepts the refused request; see {@link withOption}. */
  readonly option?: NamedOption | undefined;
}

/** Creates an error for a client. The client gets the code and the message, but not the identifier. */
export function problem(name: ProblemName, message: string, more: ProblemDetails = {}): ConnectError {
  const { code = Code[problems[name].code], httpStatus, cause, option } = more;
  const error = Object.assign(new ConnectError(message, code, undefined, undefined, cause), { errorCode: name });
  if (httpStatus !== undefined) customStatuses.set(error, httpStatus);
  if (option !== undefined) namedOptions.set(error, option);
  return error;
}

/** The HTTP statuses passed to {@link problem}, by error. A property of the error would appear in logs. */
const customStatuses = new WeakMap<ConnectError, number>();

/**
 * Returns the HTTP status on REST that was passed to {@link problem}, or else the status from {@link problems}. Returns
 * `undefined` if the status follows from the code.
 */
export function problemStatusOf(error: ConnectError): number | undefined {
  const custom = customStatuses.get(error);
  if (custom !== undefined) return custom;
  const { code, httpStatus } = entries.get(errorCodeOf(error) ?? "") ?? {};
  return code !== undefined && error.code === Code[code] ? httpStatus : undefined;
}

/** The entries in {@link problems}, by identifier. Identifiers that an application defines have no entry. */
const entries: ReadonlyMap<string, Entry> = new Map(Object.entries(problems));

interface Entry {
  /** The code's name in {@link Code}. */
  readonly code?: keyof typeof Code;
  readonly httpStatus?: number;
}

/** Returns a copy of an error with another message. */
export function withMessage(error: ConnectError, message: string): ConnectError {
  const { code, metadata, details, cause } = error;
  const copy = Object.assign(new ConnectError(message, code, metadata, [], cause), {
    details,
    errorCode: errorCodeOf(error),
  });
  const custom = customStatuses.get(error);
  if (custom !== undefined) customStatuses.set(copy, custom);
  const option = optionOf(error);
  if (option !== undefined) namedOptions.set(copy, option);
  return copy;
}

/** Returns a copy of an error with other details and the same stack. */
export function withDetails(error: ConnectError, details: ConnectError["details"]): ConnectError {
  return Object.assign(withMessage(error, error.rawMessage), { details, stack: error.stack });
}

/** Returns an error's identifier, such as `ERR_NO_ROUTE`, if any. A program can set `errorCode` on its own errors. */
export function errorCodeOf(error: ConnectError): string | undefined {
  return "errorCode" in error && typeof error.errorCode === "string" ? error.errorCode : undefined;
}

/** Returns the options with which the server accepts the refused request, if any, such as `limits.urlBytes`. */
export function optionOf(error: ConnectError): NamedOption | undefined {
  return namedOptions.get(error);
}

/** The options passed to {@link problem}. */
const namedOptions = new WeakMap<ConnectError, NamedOption>();

/** The option names in error messages. An option without a name is not mentioned. */
export type OptionLabels = Readonly<Partial<Record<NamedOption, string | undefined>>>;

/** Appends the option that accepts a refused request, if any, to the error message, by its name in `names`. */
export function withOption(error: ConnectError, names?: OptionLabels): ConnectError {
  const option = optionOf(error);
  const shown = option === undefined || names === undefined ? option : names[option];
  if (shown === undefined) return error;
  return withMessage(error, `${error.rawMessage}; to accept it, set the server option ${shown}`);
}
