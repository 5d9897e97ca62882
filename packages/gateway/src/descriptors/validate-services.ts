import type { DescEnum, DescMessage, DescService } from "@bufbuild/protobuf";
import { clipped, messageOf, withCode } from "../errors/index.ts";
import { requireDistinct, requireIdentifier, validateEnum, validateMessage } from "./validate-files.ts";

/**
 * Checks services, and all types that their messages reach, as `validateFiles` checks files: of a program that has made
 * its descriptors itself, or has read them without protoc. Also that fields have JSON names: protoc sets them, servers in
 * C++, Java and Python leave them out of what they reflect, and without them all fields would have one name.
 *
 * @throws Error that names the first that is wrong
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
  // Iterating over a set includes what is added to it meanwhile.
  for (const { proto, typeName, fields } of messages) {
    typeName.split(".").forEach(requireIdentifier);
    validateMessage(proto, typeName);
    for (const { name, jsonName, message, enum: ofEnum } of fields) {
      if (jsonName === "") throw new Error(`field ${clipped(name)} of ${clipped(typeName)} has no JSON name`);
      if (message !== undefined) messages.add(message);
      if (ofEnum !== undefined) enums.add(ofEnum);
    }
  }
  for (const { proto, typeName } of enums) validateEnum(proto, typeName);
}
