import { StoreOpenError } from "../../contract/store-open-error.ts";

// Matches a connection URI (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). A database name with
// an unencoded @ or / is refused, because @ and / are probably a part of an unencoded password.
const form = /^postgres(?:ql)?:\/\/(?:([^/@:]*)(?::([^/@]*))?@)?([^/?@]*)(?:\/([^/?@]*))?(?:\?(.*))?$/s;

// Captures an IPv6 address without the brackets.
const hostForm = /^(?:\[([^[\]]+)\]|([^[\]:]*))(?::(.*))?$/s;

/** A database URL's parameters, by name. */
export type Parameters = ReadonlyMap<string, string>;

/**
 * Parses a URL as libpq does, and returns the decoded parameters. The parts before the `?` become `user`, `password`,
 * `host`, `port` and `dbname`, which are empty if missing. `host` and `port` are comma-separated lists. Parameters
 * after the `?` take precedence. The last value of a repeated parameter is used. A `+` is not decoded to a space.
 *
 * @throws StoreOpenError with a message that contains no part of the URL
 */
export function parseUrl(text: string): Parameters {
  const [matched, user = "", password = "", hosts = "", database = "", query = ""] = form.exec(text) ?? [];
  const parsedHosts = hosts.split(",").map((host) => hostForm.exec(host));
  if (matched === undefined || parsedHosts.includes(null)) {
    throw new StoreOpenError(
      "the database URL must be postgres://user:password@host:port/database, with %40 for @ and %2F for / in a password",
    );
  }
  return new Map([
    ["user", decode(user)],
    ["password", decode(password)],
    ["host", parsedHosts.map((host) => decode(host?.[1] ?? host?.[2] ?? "")).join()],
    ["port", parsedHosts.map((host) => decode(host?.[3] ?? "")).join()],
    ["dbname", decode(database)],
    ...query.split("&").filter(Boolean).map(parseParameter),
  ]);
}

function parseParameter(text: string): [string, string] {
  const equals = text.indexOf("=");
  if (equals <= 0) throw new StoreOpenError("each parameter in the database URL must be name=value");
  return [decode(text.slice(0, equals)), decode(text.slice(equals + 1))];
}

function decode(text: string): string {
  // A zero byte would end a parameter in the start-up message early, and begin another parameter.
  if (text.includes("\0") || text.includes("%00")) throw new StoreOpenError("the database URL must not contain %00");
  try {
    return decodeURIComponent(text);
  } catch (fault) {
    throw new StoreOpenError("the database URL has an invalid percent escape", { cause: fault });
  }
}

/** Returns a parameter's value from a fixed set, if any. @throws StoreOpenError with the accepted values */
export function readWord<Word extends string>(
  parameters: Parameters,
  name: string,
  words: readonly Word[],
): Word | undefined {
  const text = parameters.get(name);
  const word = words.find((each) => each === text);
  if (word !== undefined || text === undefined) return word;
  const accepted = words.length === 1 ? words.join() : `one of ${words.join(", ")}`;
  throw new StoreOpenError(`${name} in the database URL must be ${accepted}, got ${JSON.stringify(text)}`);
}
