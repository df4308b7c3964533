/** What expressions about tokens see: the token's `claims`, or the `user` made of them. */
import { objectOf } from '@megaplane/machinery/cel/admission-environment';
import { celEnvironment } from '@megaplane/machinery/cel/program';
import { ANY, listOf, mapOf, STRING, type CelType } from '@megaplane/machinery/cel/typing';
import type { Environment } from '@megaplane/machinery/environment';

export const CLAIMS_TYPE: CelType = mapOf(STRING, ANY);
export const USER_TYPE: CelType = objectOf('kubernetes.UserInfo', {
  username: STRING,
  uid: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
});

export const CLAIMS_ENVIRONMENT: Environment = celEnvironment({
  variables: { claims: CLAIMS_TYPE },
});
export const USER_ENVIRONMENT: Environment = celEnvironment({ variables: { user: USER_TYPE } });
