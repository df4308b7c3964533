/** Virtual kinds that answer a question and are not stored: who am I, may I, is this token good. */
import { defineSubresource } from './subresource.ts';

/** Registers them. */
export function defineReviews(): void {
  defineSubresource('selfsubjectreviews.authentication.k8s.io', 'create', (context) => {
    const { call, body } = context;
    const { user, uid, groups, extra } = call.identity;
    call.sendObject(201, {
      ...body,
      status: {
        userInfo: {
          username: user,
          ...(uid === '' ? {} : { uid }),
          groups: [...groups],
          ...(Object.keys(extra).length === 0
            ? {}
            : {
                extra: Object.fromEntries(
                  Object.entries(extra).map(([key, values]) => [key, [...values]]),
                ),
              }),
        },
      },
    });
  });
}
