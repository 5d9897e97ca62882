import { StoreOpenError } from "../../contract/store-open-error.ts";

/**
 * Parses the settings in a database URL's `options`, which are `-c name=value` or `--name=value`. The last value of a
 * setting is used (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-OPTIONS). Ignores other switches.
 */
export function parseSettings(options: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  const words = splitWords(options).values();
  for (const word of words) {
    const setting = word === "-c" ? words.next().value : /^(?:-c|--)(.+)$/s.exec(word)?.[1];
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(setting ?? "") ?? [];
    if (name !== undefined && value !== undefined) settings.set(name.replaceAll("-", "_").toLowerCase(), value);
  }
  return settings;
}

/** Like {@link parseSettings}. @throws StoreOpenError if a word is not a setting, a switch or Neon's `endpoint=` */
export function readSettings(options: string): ReadonlyMap<string, string> {
  const settings = splitWords(options.replaceAll(/(?<=^|\s)-c\s+/g, "-c"));
  const other = settings.find((word) => !/^(?:(?:-c|--)[^\s=-][^\s=]*=|-[abd-z]|endpoint=)/i.test(word));
  if (other === undefined) return parseSettings(options);
  throw new StoreOpenError(
    `options in the database URL must consist of -c name=value, --name=value and switches such as -e, got ${JSON.stringify(other)}`,
  );
}

// Spaces separate words. A backslash escapes any character.
function splitWords(options: string): readonly string[] {
  const words = options.match(/(?:\\.|[^\s\\])+/gs) ?? [];
  return words.map((word) => word.replaceAll(/\\(.)/gs, "$1"));
}

/** Returns the error for a setting that a pooler did not pass to the server. */
export function droppedSetting(name: string): StoreOpenError {
  return new StoreOpenError(
    `the options in the database URL set ${name}, but the server did not get this setting, probably because of a ` +
      `connection pooler: set it for the role (ALTER ROLE … SET ${name} = …), or connect to the server directly`,
  );
}
