import { describe, expect, test } from "vitest";
import { createGateway, type Endpoint } from "../../src/index.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// A handler or an endpoint may be an object of any class with other members. Only a member with a name similar to one
// that the object lacks is rejected.

function serve(implementation: object): void {
  createGateway({ routes: (router) => router.service(KitchenSink, implementation) });
}

const respond = (): object => ({});
const optionsError = (message: string): Error => Object.assign(new TypeError(message), { code: "ERR_OPTIONS" });

class Handlers {
  readonly names: readonly string[] = [];
  query = respond;
  // Getters are not called at start.
  get creat(): never {
    throw new Error("too early");
  }
}

class MisspelledHandlers extends Handlers {
  replce(): object {
    return {};
  }
}

test.each<{ name: string; implementation: object }>([
  { name: "no RPC at all", implementation: {} },
  { name: "methods unlike any RPC", implementation: { query: respond, openDatabase: respond } },
  { name: "a misspelled member that is not a function", implementation: { creates: 7, create: undefined } },
  { name: "a misspelled method next to the correct one", implementation: { create: respond, creates: respond } },
  { name: "the members of a class", implementation: new Handlers() },
])("a handler object with $name is accepted", ({ implementation }) => {
  expect(() => serve(implementation)).not.toThrow();
});

test.each<{ name: string; implementation: object; wrong: string; meant: string }>([
  { name: "a letter is missing", implementation: { creat: respond }, wrong: "creat", meant: "create" },
  { name: "its case is different", implementation: { Create: respond }, wrong: "Create", meant: "create" },
  { name: "it is in a class", implementation: new MisspelledHandlers(), wrong: "replce", meant: "replace" },
])("a handler object is rejected for a misspelled RPC method ($name)", ({ implementation, wrong, meant }) => {
  const problem = `the service kitchensink.v1.KitchenSink has no RPC "${wrong}", did you mean "${meant}"?`;
  expect(() => serve(implementation)).toThrow(optionsError(problem));
});

describe("an endpoint", () => {
  const endpoint: Endpoint = { path: "/a", open: true, handle: () => ({ httpStatus: 200, body: "" }) };
  const start = (more: object): unknown =>
    createGateway({ routes: () => undefined, endpoints: [Object.assign(Object.create(endpoint), more)] });

  test.each<{ name: string; more: object }>([
    { name: "an unknown member", more: { url: "https://a.example" } },
    { name: "a misspelled member next to the correct one", more: { httpMethods: ["POST"], httpMethod: "POST" } },
    { name: "a misspelled member next to an inherited one", more: { paths: ["/a"] } },
  ])("with $name is accepted", ({ more }) => expect(() => start(more)).not.toThrow());

  test("is rejected for a misspelled member", () => {
    const problem = 'unknown option "httpMethod" of endpoint /a, did you mean "httpMethods"?';
    expect(() => start({ httpMethod: ["POST"] })).toThrow(optionsError(problem));
  });
});
