import type { DescMessage } from "@bufbuild/protobuf";
import { create, isMessage, toBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { AnySchema, EmptySchema } from "@bufbuild/protobuf/wkt";
import { hasCustomJsonRepresentation } from "./custom-form.ts";
import { FieldProblem, quote } from "./field-problem.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { ReadContext } from "./read-context.ts";
import { requireFieldsRead } from "./required-fields.ts";

// Maximum nesting of Anys. Each enclosing Any encodes the content again, so the limit keeps the time linear.
const nestedAnysMax = 8;

/** Reads a google.protobuf.Any, an object with `@type` and the fields of this type. `{}` is an empty Any. */
export function readAny(context: ReadContext): Any {
  const { scanner } = context;
  if (scanner.peek() !== "object") throw new FieldProblem("must be an object");
  const mark = scanner.mark();
  const typeUrl = context.typeUrls?.get(mark.at) ?? findTypeUrl(context);
  if (typeUrl === undefined) return create(AnySchema);
  const desc = findType(context, typeUrl);
  if (++context.anyDepth > nestedAnysMax)
    throw new FieldProblem(`google.protobuf.Any is nested more than ${nestedAnysMax} levels deep`);
  scanner.rewind(mark);
  const message = readPacked(context, desc);
  context.anyDepth--;
  // toBinary() throws for messages that lack required fields.
  requireFieldsRead(context, desc, message);
  if (!isMessage(message, desc)) throw new TypeError(`the reader of ${desc.typeName} returned another type`);
  return create(AnySchema, { typeUrl, value: toBinary(desc, message) });
}

function findTypeUrl(context: ReadContext): string | undefined {
  const { scanner } = context;
  scanner.openObject();
  let key = scanner.firstKey();
  if (key === undefined) return undefined;
  for (; key !== undefined; key = scanner.nextKey()) {
    if (key !== "@type") skipAndNoteTypes(scanner, (context.typeUrls ??= new Map()));
    else if (scanner.peek() === "string") return scanner.readString();
    else break;
  }
  throw new FieldProblem('"@type" is missing');
}

/**
 * Skips a value that precedes its Any's `@type`. Stores the `@type` of each Any inside the value, by the object's
 * position, so that a nested Any is skipped once instead of once per level.
 */
function skipAndNoteTypes(scanner: JsonScanner, typeUrls: Map<number, string>): void {
  const kind = scanner.peek();
  if (kind === "array") return scanner.readArray(() => skipAndNoteTypes(scanner, typeUrls));
  if (kind !== "object") return scanner.skipValue();
  const { at } = scanner;
  scanner.readObject((key) => {
    if (key === "@type" && scanner.peek() === "string") typeUrls.set(at, scanner.readString());
    else skipAndNoteTypes(scanner, typeUrls);
  });
}

function findType(context: ReadContext, typeUrl: string): DescMessage {
  const slash = typeUrl.lastIndexOf("/");
  const desc = slash < 0 ? undefined : context.registry?.getMessage(typeUrl.slice(slash + 1));
  if (desc === undefined) throw new FieldProblem(`unknown type ${quote(typeUrl)}`, "jsonOptions.registry");
  return desc;
}

function readPacked(context: ReadContext, desc: DescMessage): unknown {
  // Implementations differ for an Empty in an Any. Go writes `"value": {}`, and other languages write only `@type`.
  if (desc.typeName === EmptySchema.typeName) return readValue(context, desc) ?? create(desc);
  if (!hasCustomJsonRepresentation(desc)) return context.messages.readFields(context, desc, { ignoredKey: "@type" });
  const message = readValue(context, desc);
  if (message === undefined) throw new FieldProblem('"value" is missing');
  return message;
}

// Reads a message whose type has its own JSON form. An Any contains this form in "value" instead of the fields. Returns
// `undefined` if "value" is missing.
function readValue(context: ReadContext, desc: DescMessage): unknown {
  const { scanner, unknown, path } = context;
  let message: unknown;
  scanner.readObject((key) => {
    if (key === "value") {
      message = context.messages.readerOf(desc)(context);
      return;
    }
    if (key !== "@type") unknown.addField(key, path);
    scanner.skipValue();
  });
  return message;
}
