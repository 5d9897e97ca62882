import { StoreOpenError } from "../../contract/store-open-error.ts";

/**
 * Reads the settings in a database URL's `options`, which are `-c name=value` or `--name=value`. The last value of a
 * setting is used (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-OPTIONS). Ignores other switches.
 *
 * @throws StoreOpenError if a word is not a setting, a switch or Neon's `endpoint=`
 */
export function readSettings(options: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  // Spaces separate words. A backslash escapes any character. The word after `-c` belongs to `-c`.
  const words = options.match(/(?:-c\s+)?(?:\\.|[^\s\\])+/gs) ?? [];
  for (const word of words.map((escaped) => escaped.replaceAll(/\\(.)/gs, "$1"))) {
    const [, name, value = ""] = /^(?:-c\s*|--)([^\s=-][^\s=]*)=(.*)$/s.exec(word) ?? [];
    if (name !== undefined) settings.set(name.replaceAll("-", "_").toLowerCase(), value);
    else if (!/^(?:-[abd-z]|endpoint=)/i.test(word)) {
      throw new StoreOpenError(
        `options in the database URL must consist of -c name=value, --name=value and switches such as -e, got ${JSON.stringify(word)}`,
      );
    }
  }
  return settings;
}

/** Returns the error for a setting that a pooler did not pass to the server. */
export function droppedSetting(name: string): StoreOpenError {
  return new StoreOpenError(
    `the options in the database URL set ${name}, but the server did not get this setting, probably because of a ` +
      `connection pooler: set it for the role (ALTER ROLE … SET ${name} = …), or connect to the server directly`,
  );
}
