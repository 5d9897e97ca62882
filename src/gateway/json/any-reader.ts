import type { DescMessage } from "@bufbuild/protobuf";
import { create, isMessage, toBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { AnySchema, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { FieldProblem, quote } from "./field-problem.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { ReadContext } from "./read-context.ts";

// `@type` may stand behind the fields it gives a meaning, so each level of Any may be walked twice:
// this bound keeps the reading linear.
const anyDepthMax = 8;

/**
 * Reads a google.protobuf.Any: the fields of the message it holds, beside the `@type` that names it.
 *
 * The type is looked up in the registry of the reading; `{}` is an empty Any.
 */
export function readAny(context: ReadContext): Any {
  const { scanner } = context;
  if (scanner.peek() !== "object") throw new FieldProblem("not an object");
  const mark = scanner.mark();
  const typeUrl = findTypeUrl(scanner);
  if (typeUrl === undefined) return create(AnySchema);
  const desc = findType(context, typeUrl);
  if (++context.anyDepth > anyDepthMax) throw new FieldProblem(`more than ${anyDepthMax} levels of Any`);
  scanner.rewind(mark);
  const message = hasCustomJsonRepresentation(desc)
    ? readCustomValue(context, desc)
    : context.messages.readFields(context, desc, undefined, "@type");
  context.anyDepth--;
  if (!isMessage(message, desc)) throw new TypeError(`the reader of ${desc.typeName} made something else`);
  return create(AnySchema, { typeUrl, value: toBinary(desc, message) });
}

function findTypeUrl(scanner: JsonScanner): string | undefined {
  scanner.openObject();
  let key = scanner.firstKey();
  if (key === undefined) return undefined;
  for (; key !== undefined; key = scanner.nextKey()) {
    if (key !== "@type") scanner.skipValue();
    else if (scanner.peek() === "string") return scanner.readString();
    else break;
  }
  throw new FieldProblem('has no "@type"');
}

function findType(context: ReadContext, typeUrl: string): DescMessage {
  const slash = typeUrl.lastIndexOf("/");
  const desc = slash < 0 ? undefined : context.registry?.getMessage(typeUrl.slice(slash + 1));
  if (desc === undefined) throw new FieldProblem(`type ${quote(typeUrl)} is not known here`);
  return desc;
}

// A type with a form of its own stands under "value", where its fields would otherwise be.
function readCustomValue(context: ReadContext, desc: DescMessage): unknown {
  const { scanner, unknown } = context;
  const seen = new Set<string>();
  let message: unknown = create(desc);
  scanner.openObject();
  for (let key = scanner.firstKey(); key !== undefined; key = scanner.nextKey()) {
    if (seen.has(key)) throw new FieldProblem(`key ${quote(key)} is set more than once`);
    seen.add(key);
    if (key === "value") {
      message = context.messages.readerOf(desc)(context);
      continue;
    }
    if (key !== "@type") unknown.push(key);
    scanner.skipValue();
  }
  if (!seen.has("value")) throw new FieldProblem('has no "value"');
  return message;
}
