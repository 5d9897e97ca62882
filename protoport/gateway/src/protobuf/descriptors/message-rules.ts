import type { MessageOptions } from "@bufbuild/protobuf/wkt";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { copyWith } from "./complete-files.ts";
import { type EncodedField, fieldsOf } from "./parse-files.ts";

/** The number of the extension `buf.validate.message`. Used because a descriptor set may lack the extension's file. */
const extensionNumber = 1159;

/** The numbers of `MessageRules.oneof` and `MessageOneofRule.fields`. */
const oneofNumber = 4;
const fieldsNumber = 1;

/**
 * Removes fields from `(buf.validate.message).oneof` rules, and rules that have no remaining fields.
 *
 * @throws Error if the option is malformed
 */
export function withoutOneofFields(options: MessageOptions, names: ReadonlySet<string>): MessageOptions {
  if (options.$unknown?.some(({ no }) => no === extensionNumber) !== true) return options;
  return copyWith(options, {
    $unknown: options.$unknown.map((field) => {
      if (field.no !== extensionNumber || field.wireType !== WireType.LengthDelimited) return field;
      const rules = rulesWithout(new BinaryReader(field.data).bytes(), names);
      return { ...field, data: new BinaryWriter().bytes(rules).finish() };
    }),
  });
}

/** Returns an encoded `MessageRules` without some fields in its oneof rules. */
function rulesWithout(rules: Uint8Array, names: ReadonlySet<string>): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of fieldsOf(rules)) {
    if (field.number !== oneofNumber || field.content === undefined) {
      writer.raw(encodedIn(rules, field));
      continue;
    }
    const rule = oneofRuleWithout(field.content, names);
    if (rule !== undefined) writer.tag(oneofNumber, WireType.LengthDelimited).bytes(rule);
  }
  return writer.finish();
}

/** Returns an encoded `MessageOneofRule` without some fields, or `undefined` if no fields remain. */
function oneofRuleWithout(rule: Uint8Array, names: ReadonlySet<string>): Uint8Array | undefined {
  const isNamed = ({ number, content }: EncodedField): boolean =>
    number === fieldsNumber && names.has(new TextDecoder().decode(content));
  const kept = [...fieldsOf(rule)].filter((field) => !isNamed(field));
  if (!kept.some(({ number }) => number === fieldsNumber)) return undefined;
  const writer = new BinaryWriter();
  for (const field of kept) writer.raw(encodedIn(rule, field));
  return writer.finish();
}

function encodedIn(message: Uint8Array, { start, end }: EncodedField): Uint8Array {
  return message.subarray(start, end);
}
