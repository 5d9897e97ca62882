import type { ServiceImpl } from "@connectrpc/connect";
import type { GatewayOptions } from "../../../gateway/src/index.ts";
import type { Validation } from "../../../gateway/src/validation/index.ts";
import { SignupService } from "../gen/signup/v1/signup_pb.ts";
import type { Address } from "../http/exchange.ts";
import { createTestGateway } from "./test-gateway.ts";

interface NewAccount {
  readonly name: string;
  readonly email: string;
  readonly age: number;
  readonly addresses: { readonly zip: string }[];
}

/** An account that satisfies every rule. */
export const validAccount: NewAccount = {
  name: "Ada",
  email: "ada@example.com",
  age: 36,
  addresses: [{ zip: "12345" }],
};

/** Handlers that count the messages they receive. `received` has the account names. */
function signupHandlers(received: string[]): ServiceImpl<typeof SignupService> {
  const register = ({ name }: { readonly name: string }): { count: number } => ({ count: received.push(name) });
  return {
    register,
    async *registerAndWatch(account) {
      yield register(account);
    },
    async import(accounts) {
      for await (const account of accounts) register(account);
      return { count: received.length };
    },
    async *exchange(accounts) {
      for await (const account of accounts) yield register(account);
    },
    ping: ({ count }) => ({ count }),
  };
}

/** Starts a gateway with the signup service on loopback. */
export async function startSignup(
  validation: Validation | undefined,
  options: Partial<GatewayOptions> = {},
): Promise<AsyncDisposable & { readonly address: Address; readonly received: readonly string[] }> {
  const received: string[] = [];
  const gateway = createTestGateway({
    routes: (router) => router.service(SignupService, signupHandlers(received)),
    ...(validation && { validation }),
    ...options,
  });
  const address = await gateway.listen({ host: "127.0.0.1" });
  return { address, received, [Symbol.asyncDispose]: () => gateway.close() };
}
