import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { fieldsOf } from "./parse-files.ts";
import { joinNames } from "./validate-files.ts";

/** The full names of the services and RPCs that a descriptor set declares. */
export interface DeclaredNames {
  readonly services: readonly string[];
  /** The RPCs' full names, as `package.Service.Method`. */
  readonly rpcs: readonly string[];
}

/**
 * Returns the names in a binary google.protobuf.FileDescriptorSet, even of services that are hidden or omitted.
 *
 * @throws Error if the bytes are not protobuf
 */
export function declaredNames(set: Uint8Array): DeclaredNames {
  const services: string[] = [];
  const rpcs: string[] = [];
  for (const file of contentsOf(set, FileDescriptorSetSchema.field.file)) {
    const scope = nameIn(file, FileDescriptorProtoSchema.field.package);
    for (const service of contentsOf(file, FileDescriptorProtoSchema.field.service)) {
      const typeName = joinNames(scope, nameIn(service, ServiceDescriptorProtoSchema.field.name));
      services.push(typeName);
      for (const method of contentsOf(service, ServiceDescriptorProtoSchema.field.method))
        rpcs.push(joinNames(typeName, nameIn(method, MethodDescriptorProtoSchema.field.name)));
    }
  }
  return { services, rpcs };
}

/** Returns the encoded values of a message's length-delimited field. */
function contentsOf(message: Uint8Array, { number }: { readonly number: number }): readonly Uint8Array[] {
  return [...fieldsOf(message)].flatMap((field) =>
    field.number === number && field.content !== undefined ? [field.content] : [],
  );
}

function nameIn(message: Uint8Array, field: { readonly number: number }): string {
  return new TextDecoder().decode(contentsOf(message, field).at(-1));
}
