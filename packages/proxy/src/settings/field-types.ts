import { isToken, requireField } from "@plantstore/http";
import { isSettable } from "../upstreams/index.ts";
import { textOrSecret } from "./secret-types.ts";
import type { SettingType } from "./setting.ts";
import { record, text } from "./setting-types.ts";

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
      else if (!isFieldValue(fields[name] ?? ""))
        report(located, "has a value with a character that HTTP does not allow");
    }
    return fields;
  },
};

/** A forwarded header field's new name. */
export const newFieldName: SettingType<string> = text("text", (name) => {
  if (isSettable(name.toLowerCase())) return name;
  throw new Error(`must be a field that can be set, got ${JSON.stringify(name)}`);
});

/** A header field's name, for CORS. */
export const fieldName: SettingType<string> = text("text", (name) => {
  if (isToken(name)) return name;
  throw new Error(`must be the name of a header field, got ${JSON.stringify(name)}`);
});

/** An origin, or `*`. An origin with a path or capital letters would never match (RFC 6454 §6.2). */
export const originOrAny: SettingType<string> = text("text", (origin) => {
  if (origin === "*" || URL.parse(origin)?.origin === origin) return origin;
  throw new Error(`must be * or an origin such as https://shop.example, got ${JSON.stringify(origin)}`);
});

/** Returns whether HTTP allows a field value (RFC 9110 §5.5). */
function isFieldValue(value: string): boolean {
  try {
    requireField("x", value);
    return true;
  } catch {
    return false;
  }
}
