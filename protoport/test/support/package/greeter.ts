/** A module for a user's project with a service's descriptor, written without a code generator. */
export const greeterModule = `
  import { create, createFileRegistry } from "@bufbuild/protobuf";
  import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
  const types = { inputType: ".greet.Greeting", outputType: ".greet.Greeting" };
  const file = create(FileDescriptorProtoSchema, {
    name: "greet.proto", package: "greet", syntax: "proto3",
    messageType: [{ name: "Greeting", field: [{ name: "name", number: 1, type: 9, label: 1, jsonName: "name" }] }],
    service: [{
      name: "Greeter",
      method: [{ name: "Greet", ...types }, { name: "GreetTwice", ...types, serverStreaming: true }],
    }],
  });
  export const Greeter = createFileRegistry(file, () => undefined).getService("greet.Greeter");
`;

/** The service's HTTP rules. */
export const greeterRules: string = JSON.stringify({
  rules: [
    { selector: "greet.Greeter.Greet", get: "/greetings/{name}" },
    { selector: "greet.Greeter.GreetTwice", get: "/greetings/{name}/twice" },
  ],
});
