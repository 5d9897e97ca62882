import { StoreOpenError } from "../../store-open-error.ts";

// postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS:
//   postgresql://[userspec@][hostspec][/dbname][?paramspec]
//   userspec: user[:password]    hostspec: [host][:port][,...]    paramspec: name=value[&...]
// The name of a database with a bare @ or / is refused: it would be the rest of a password that is not encoded.
const form = /^postgres(?:ql)?:\/\/(?:([^/@:]*)(?::([^/@]*))?@)?([^/?@]*)(?:\/([^/?@]*))?(?:\?(.*))?$/s;

// An IPv6 address is in brackets, which are not part of it.
const hostForm = /^(?:\[([^[\]]+)\]|([^[\]:]*))(?::(.*))?$/s;

/**
 * Takes a URL apart as libpq does, into its parameters, decoded. The parts before the `?` are `user`, `password`, `host`
 * and `port` (each a list with commas), and `dbname`, which are empty if they are missing; those after it take
 * precedence, the last one if one is repeated. A `+` does not mean a space.
 *
 * @throws StoreOpenError, which shows nothing of the URL
 */
export function parseUrl(text: string): ReadonlyMap<string, string> {
  const [matched, user = "", password = "", hosts = "", database = "", query = ""] = form.exec(text) ?? [];
  const places = hosts.split(",").map((place) => hostForm.exec(place));
  if (matched === undefined || places.includes(null)) {
    throw new StoreOpenError("the database URL must be postgres://user:password@host:port/database");
  }
  return new Map([
    ["user", decode(user)],
    ["password", decode(password)],
    ["host", places.map((place) => decode(place?.[1] ?? place?.[2] ?? "")).join()],
    ["port", places.map((place) => decode(place?.[3] ?? "")).join()],
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
  try {
    return decodeURIComponent(text);
  } catch (fault) {
    throw new StoreOpenError("the database URL has an invalid percent escape", { cause: fault });
  }
}
