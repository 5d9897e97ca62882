import { formatted, isOrigin, record, type SettingType } from "@protoport/command-line/settings";
import { isToken, requireField } from "@protoport/gateway/exchange";
import { isSettable } from "../upstreams/index.ts";
import { textOrSecret } from "./secret-types.ts";

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
export const newFieldName: SettingType<string> = formatted("text", "a field that can be set", (name) =>
  isSettable(name.toLowerCase()) ? name : undefined,
);

/** A header field's name, for CORS. */
export const fieldName: SettingType<string> = formatted("text", "the name of a header field", (name) =>
  isToken(name) ? name : undefined,
);

/** An origin, or `*`. */
export const originOrAny: SettingType<string> = formatted(
  "text",
  "* or an origin such as https://shop.example",
  (origin) => (origin === "*" || isOrigin(origin) ? origin : undefined),
);

/** Returns whether HTTP allows a field value (RFC 9110 §5.5). */
function isFieldValue(value: string): boolean {
  try {
    requireField("x", value);
    return true;
  } catch {
    return false;
  }
}
