/** etcd's texts about users, roles and tokens; clients match on them. */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCode } from '@megaplane/wire/grpc';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';

const { failedPrecondition, invalidArgument, permissionDenied, unauthenticated } = GRPC_CODES;

function failure(code: GrpcCode, text: string): EtcdFailure {
  return { code, text: `etcdserver: ${text}` };
}

type AuthFailureName =
  | ('noRootUser' | 'noRootRole' | 'userExists' | 'userEmpty' | 'userNotFound' | 'roleExists')
  | ('roleNotFound' | 'roleEmpty' | 'failed' | 'permissionNotGiven' | 'permissionDenied')
  | ('roleNotGranted' | 'permissionNotGranted' | 'notEnabled' | 'invalidToken')
  | ('invalidManagement' | 'oldRevision' | 'noPasswordUser' | 'passwordTooLong' | 'verifyOnly');

export const AUTH: Readonly<Record<AuthFailureName, EtcdFailure>> = {
  noRootUser: failure(failedPrecondition, 'root user does not exist'),
  noRootRole: failure(failedPrecondition, 'root user does not have root role'),
  userExists: failure(failedPrecondition, 'user name already exists'),
  userEmpty: failure(invalidArgument, 'user name is empty'),
  userNotFound: failure(failedPrecondition, 'user name not found'),
  roleExists: failure(failedPrecondition, 'role name already exists'),
  roleNotFound: failure(failedPrecondition, 'role name not found'),
  roleEmpty: failure(invalidArgument, 'role name is empty'),
  failed: failure(invalidArgument, 'authentication failed, invalid user ID or password'),
  permissionNotGiven: failure(invalidArgument, 'permission not given'),
  permissionDenied: failure(permissionDenied, 'permission denied'),
  roleNotGranted: failure(failedPrecondition, 'role is not granted to the user'),
  permissionNotGranted: failure(failedPrecondition, 'permission is not granted to the role'),
  notEnabled: ETCD.authNotEnabled,
  invalidToken: failure(unauthenticated, 'invalid auth token'),
  invalidManagement: failure(invalidArgument, 'invalid auth management'),
  oldRevision: failure(invalidArgument, 'revision of auth store is old'),
  noPasswordUser: {
    code: GRPC_CODES.unknown,
    text: 'auth: authentication failed, password was given for no password user',
  },
  passwordTooLong: {
    code: GRPC_CODES.unknown,
    text: 'bcrypt: password length exceeds 72 bytes',
  },
  verifyOnly: {
    code: GRPC_CODES.unknown,
    text: 'auth: token signing attempted with verify-only key',
  },
};
