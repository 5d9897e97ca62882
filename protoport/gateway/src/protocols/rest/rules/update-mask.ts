import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { create, isMessage } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { createFieldSetter, loadField } from "../../../protobuf/index.ts";
import { findProtoField } from "./field-path.ts";
import type { HttpPattern } from "./http-rule.ts";

/** Returns the request's only FieldMask if the method is PATCH and the body is a message field, as in grpc-gateway. */
export function findUpdateMask(input: DescMessage, { httpMethod, body }: HttpPattern): DescField | undefined {
  const bodyField = findProtoField(input, body);
  if (httpMethod !== "PATCH" || bodyField?.fieldKind !== "message") return undefined;
  const [mask, other] = input.fields.filter((field) => field.message?.typeName === FieldMaskSchema.typeName);
  return other === undefined && mask?.fieldKind === "message" && mask.oneof === undefined ? mask : undefined;
}

/** Fills a missing or empty update mask with the paths of the fields that the body has set. */
export function fillUpdateMask(maskField: DescField, message: Message, fieldPaths: readonly string[]): void {
  const sentMask = loadField(message, maskField);
  if (fieldPaths.length === 0 || (isMessage(sentMask, FieldMaskSchema) && sentMask.paths.length > 0)) return;
  // Paths in the mask are relative to the resource, so they lack the body field's name.
  const paths = fieldPaths.map((path) => path.slice(path.indexOf(".") + 1)).toSorted();
  createFieldSetter(maskField)(message, create(FieldMaskSchema, { paths }));
}
