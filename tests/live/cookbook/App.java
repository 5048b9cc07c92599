// SPDX-License-Identifier: BSD-2-Clause
// What the recipes about Java trace: it collects garbage, calls methods, and its threads wait for a lock. It begins after a
// line of its standard input, says what it did by its own counters and by java.lang.management, and ends after another line.
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;

public class App {
    static class Ledger {
        int lines;

        int add(int n) {
            lines++;
            return check(n);
        }

        int check(int n) {
            return n + 1;
        }
    }

    static final Object drawer = new Ledger();
    static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    static long blocked, blockedMilliseconds;

    static void collect() {
        byte[][] kept = new byte[64][];
        for (int i = 0; i < 4000; i++) kept[i % 64] = new byte[64 * 1024];
        for (int i = 0; i < 3; i++) System.gc();
    }

    static void waitForDrawer(CountDownLatch held) {
        try {
            held.await();
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
        ThreadInfo before = threads.getThreadInfo(Thread.currentThread().getId());
        synchronized (drawer) {
        }
        ThreadInfo after = threads.getThreadInfo(Thread.currentThread().getId());
        blocked += after.getBlockedCount() - before.getBlockedCount();
        blockedMilliseconds += after.getBlockedTime() - before.getBlockedTime();
    }

    static void contend() throws InterruptedException {
        for (int i = 0; i < 4; i++) {
            CountDownLatch held = new CountDownLatch(1);
            Thread waiter = new Thread(() -> waitForDrawer(held));
            waiter.start();
            synchronized (drawer) {
                held.countDown();
                Thread.sleep(40);
            }
            waiter.join();
        }
    }

    public static void main(String[] args) throws Exception {
        threads.setThreadContentionMonitoringEnabled(true);
        System.out.println("ready");
        System.in.read();
        collect();
        contend();
        Ledger ledger = new Ledger();
        for (int i = 0; i < 20000; i++) ledger.add(i);
        System.out.println(blocked + " " + blockedMilliseconds + " " + ledger.lines);
        System.in.read();
    }
}
