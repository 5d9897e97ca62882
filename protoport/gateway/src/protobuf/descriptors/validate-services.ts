import type { DescEnum, DescMessage, DescService } from "@bufbuild/protobuf";
import { toShortLine, messageOf, withCode } from "../../http/index.ts";
import { requireDistinct, requireIdentifier, validateEnum, validateMessage } from "./validate-files.ts";

/**
 * Checks services and all types that their messages use, as `validateFiles` does, because the descriptors may not come
 * from protoc. Fields must have JSON names, which server reflection in C++, Java and Python leaves out.
 *
 * @throws Error that names the first problem
 */
export function validateServices(services: Iterable<DescService>): void {
  try {
    validate(services);
  } catch (error) {
    throw withCode(new Error(`cannot use the descriptors: ${messageOf(error)}`), "ERR_DESCRIPTORS");
  }
}

function validate(services: Iterable<DescService>): void {
  const messages = new Set<DescMessage>();
  const enums = new Set<DescEnum>();
  for (const { typeName, methods } of services) {
    typeName.split(".").forEach(requireIdentifier);
    requireDistinct(
      methods.map(({ name }) => name),
      typeName,
    );
    for (const { input, output } of methods) messages.add(input).add(output);
  }
  for (const { proto, typeName, fields } of messages) {
    typeName.split(".").forEach(requireIdentifier);
    validateMessage(proto, typeName);
    for (const { name, jsonName, message, enum: ofEnum } of fields) {
      if (jsonName === "") throw new Error(`field ${toShortLine(name)} of ${toShortLine(typeName)} has no JSON name`);
      if (message !== undefined) messages.add(message);
      if (ofEnum !== undefined) enums.add(ofEnum);
    }
  }
  for (const { proto, typeName } of enums) validateEnum(proto, typeName);
}
