import { createFetchGateway, type FetchHandler } from "../../../gateway/src/fetch/entry.ts";
import { openValidation, type ValidationOptions } from "../../../gateway/src/validation/index.ts";
import { SignupService } from "../gen/signup/v1/signup_pb.ts";

/** Opens the signup service over Fetch for other runtimes. Does not import test helpers, which require node. */
export async function openSignup(options: ValidationOptions): Promise<FetchHandler> {
  const validation = await openValidation(options);
  return createFetchGateway({ routes: (router) => router.service(SignupService, { register }), validation }).fetch;
}

const register = (): { count: number } => ({ count: 1 });
